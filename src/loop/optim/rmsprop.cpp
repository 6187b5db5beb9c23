#include "rmsprop.hpp"

#include <cmath>
#include <span>
#include <utility>

#include <rubato/loop/optimizer.hpp>

#include "base/machine/instruction_set.hpp"

namespace rubato {

namespace {

constexpr std::string_view kRmspropSquare = "optimizer.rmsprop.square";
constexpr std::string_view kRmspropMean = "optimizer.rmsprop.mean";
constexpr std::string_view kRmspropVelocity = "optimizer.rmsprop.velocity";

// The beginning of a piece of the parameters in all arrays; `mean` is null unless it is centred,
// and `velocity` is null without momentum.
template <class T>
struct RmspropArrays {
  T* parameters;
  T* square;
  T* mean;
  T* velocity;
  const T* gradient_sum;
};

template <bool Centered, bool Momentum, class T>
[[gnu::always_inline]] inline void rmsprop_loop(T* __restrict parameters, T* __restrict square,
                                                T* __restrict mean, T* __restrict velocity,
                                                const T* __restrict gradient_sum, std::size_t n,
                                                RmspropCoefficients<T> c) {
  for (std::size_t i = 0; i < n; ++i) {
    const T g = applied_gradient(gradient_sum[i], parameters[i], c.gradient);
    const T s = c.alpha * square[i] + c.rest * g * g;
    square[i] = s;
    T variance = s;
    if constexpr (Centered) {
      const T a = c.alpha * mean[i] + c.rest * g;
      mean[i] = a;
      variance = s - a * a;
      variance = variance < T{0} ? T{0} : variance;
    }
    const T divisor = std::sqrt(variance) + c.epsilon;
    if constexpr (Momentum) {
      const T b = c.momentum * velocity[i] + quotient(g, divisor);
      velocity[i] = b;
      parameters[i] -= c.learning_rate * b;
    } else {
      parameters[i] -= quotient(c.learning_rate * g, divisor);
    }
  }
}

template <bool Centered, class T>
[[gnu::always_inline]] inline void rmsprop_loops(const RmspropArrays<T>& at, std::size_t n,
                                                 const RmspropCoefficients<T>& c) {
  if (at.velocity == nullptr) {
    rmsprop_loop<Centered, false>(at.parameters, at.square, at.mean, at.velocity, at.gradient_sum,
                                  n, c);
  } else {
    rmsprop_loop<Centered, true>(at.parameters, at.square, at.mean, at.velocity, at.gradient_sum, n,
                                 c);
  }
}

template <class T>
[[gnu::always_inline]] inline void rmsprop_loops(const RmspropArrays<T>& at, std::size_t n,
                                                 const RmspropCoefficients<T>& c) {
  if (at.mean == nullptr) {
    rmsprop_loops<false>(at, n, c);
  } else {
    rmsprop_loops<true>(at, n, c);
  }
}

template <class T>
RmspropCoefficients<T> rmsprop_coefficients(const RmspropOptions& options, const LayerRates& layer,
                                            const Update<T>& update) {
  return {.gradient = {.factor = update.gradient_factor,
                       .clip = update.clip,
                       .weight_decay = static_cast<T>(layer.weight_decay)},
          .alpha = static_cast<T>(options.alpha),
          .rest = static_cast<T>(1 - options.alpha),
          .epsilon = static_cast<T>(options.epsilon),
          .momentum = static_cast<T>(layer.momentum),
          .learning_rate = static_cast<T>(layer.rate)};
}

}  // namespace

template <class T>
Rmsprop<T>::Rmsprop(ParameterLayout layout, const RmspropOptions& options,
                    std::vector<GroupOptions> groups)
    : options_(options),
      ranges_(std::move(layout), std::move(groups), options.weight_decay, options.momentum),
      square_(ranges_.size()),
      mean_(options.centered ? ranges_.size() : 0),
      velocity_(ranges_.any_momentum() ? ranges_.size() : 0) {
  require_valid(OptimizerOptions{.kind = OptimizerKind::rmsprop,
                                 .momentum = options.momentum,
                                 .weight_decay = options.weight_decay,
                                 .alpha = options.alpha,
                                 .epsilon = options.epsilon});
}

template <class T>
void Rmsprop<T>::step(const Update<T>& update, Workers& workers) {
  const auto ranges = ranges_.of_step(update, [&](const LayerRates& layer) {
    return rmsprop_coefficients(options_, layer, update);
  });
  for_each_piece(
      update, ranges, workers,
      [&](std::size_t begin, std::size_t end, const RmspropCoefficients<T>& coefficients) {
        const bool has_momentum = coefficients.momentum != T{0};
        const RmspropArrays<T> at{.parameters = update.parameters.data() + begin,
                                  .square = square_.data() + begin,
                                  .mean = options_.centered ? mean_.data() + begin : nullptr,
                                  .velocity = has_momentum ? velocity_.data() + begin : nullptr,
                                  .gradient_sum = update.gradient_sum.data() + begin};
        with_vectors([&]() __attribute__((always_inline)) {
          rmsprop_loops(at, end - begin, coefficients);
        });
      });
}

template <class T>
void Rmsprop<T>::visit_state(StateVisitor& state) {
  state.values(kRmspropSquare, std::span<T>(square_));
  state.values(kRmspropMean, std::span<T>(mean_));
  state.values(kRmspropVelocity, std::span<T>(velocity_));
}

template class Rmsprop<float>;
template class Rmsprop<double>;

}  // namespace rubato
