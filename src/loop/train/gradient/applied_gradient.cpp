#include "applied_gradient.hpp"

#include <algorithm>

namespace rubato {

namespace {

// Bounds every element of factor * gradient, in a separate pass.
template <class T>
void scale_and_clip(std::span<T> gradient, T factor, T clip, Workers& workers) {
  workers.for_each_range(gradient.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      gradient[i] = std::clamp(gradient[i] * factor, -clip, clip);
    }
  });
}

}  // namespace

template <class T>
AppliedGradient<T> GradientPreparation<T>::prepare(const SummedGradient<T>& gradient,
                                                   const std::function<void()>& before_change,
                                                   Workers& workers) {
  if (transforms_.empty()) return clipped(gradient, workers);
  return transformed(gradient, before_change, workers);
}

template <class T>
AppliedGradient<T> GradientPreparation<T>::clipped(const SummedGradient<T>& gradient,
                                                   Workers& workers) const {
  const auto size = static_cast<T>(gradient.step.size_in_minibatches(options_.minibatch_size));
  AppliedGradient<T> applied{.factor = gradient.of_mean ? T{1} / size : T{1}};
  applied.factor *= shortening(gradient);
  if (options_.clip_value) {
    applied.clip = static_cast<T>(*options_.clip_value);
    const T of_sum = applied.clip * size;
    if (!gradient.of_mean) applied.clip = of_sum;
    // An optimizer that uses the norms of the gradient needs it clipped beforehand.
    if (gradient.norms_wanted) {
      scale_and_clip(gradient.sum, T{1}, of_sum, workers);
      applied.changed = gradient.sum;
    }
  }
  return applied;
}

template <class T>
AppliedGradient<T> GradientPreparation<T>::transformed(const SummedGradient<T>& gradient,
                                                       const std::function<void()>& before_change,
                                                       Workers& workers) {
  const auto size = static_cast<T>(gradient.step.size_in_minibatches(options_.minibatch_size));
  const T factor = T{1} / size * shortening(gradient);
  const T clip = options_.clip_value ? static_cast<T>(*options_.clip_value)
                                     : std::numeric_limits<T>::infinity();
  scale_and_clip(gradient.sum, factor, clip, workers);
  // The transforms change their state from here on.
  before_change();
  transforms_.apply({.values = gradient.sum,
                     .parameters = gradient.parameters,
                     .epoch = gradient.epoch,
                     .step = gradient.step.index,
                     .batch_size = gradient.step.batch_size,
                     .minibatches = gradient.step.minibatches,
                     .stream = {.seed = options_.seed}},
                    workers);
  return {.factor = gradient.of_mean ? T{1} : size, .changed = gradient.sum};
}

// The factor equals that of torch's clip_grad_norm_.
template <class T>
T GradientPreparation<T>::shortening(const SummedGradient<T>& gradient) const {
  if (!options_.clip_norm) return 1;
  constexpr double kTiny = 1e-6;
  return static_cast<T>(std::min(1.0, *options_.clip_norm / (*gradient.norm + kTiny)));
}

template class GradientPreparation<float>;
template class GradientPreparation<double>;

}  // namespace rubato
