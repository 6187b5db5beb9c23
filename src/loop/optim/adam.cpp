#include "adam.hpp"

#include <cmath>
#include <span>
#include <utility>

#include <rubato/loop/optimizer.hpp>

#include "base/machine/instruction_set.hpp"

namespace rubato {

namespace {

constexpr std::string_view kAdamSteps = "optimizer.adam.steps";
constexpr std::string_view kAdamMean = "optimizer.adam.mean";
constexpr std::string_view kAdamSquare = "optimizer.adam.square";
constexpr std::string_view kAdamLargestSquare = "optimizer.adam.largest_square";

// The beginning of a piece of the parameters in all arrays; `largest` is null without AMSGrad.
template <class T>
struct AdamArrays {
  T* parameters;
  T* mean;
  T* square;
  T* largest;
  const T* gradient_sum;
};

template <bool Amsgrad, class T>
[[gnu::always_inline]] inline void adam_loop(T* __restrict parameters, T* __restrict mean,
                                             T* __restrict square, T* __restrict largest,
                                             const T* __restrict gradient_sum, std::size_t n,
                                             AdamCoefficients<T> c) {
  for (std::size_t i = 0; i < n; ++i) {
    const T g = applied_gradient(gradient_sum[i], parameters[i], c.gradient);
    const T m = c.beta1 * mean[i] + c.rest1 * g;
    const T v = c.beta2 * square[i] + c.rest2 * g * g;
    mean[i] = m;
    square[i] = v;
    T u = v;
    if constexpr (Amsgrad) {
      u = v > largest[i] ? v : largest[i];
      largest[i] = u;
    }
    const T divisor = std::sqrt(u) / c.root_of_correction2 + c.epsilon;
    parameters[i] = c.kept * parameters[i] - quotient(c.step_size * m, divisor);
  }
}

template <class T>
[[gnu::always_inline]] inline void adam_loops(const AdamArrays<T>& at, std::size_t n,
                                              const AdamCoefficients<T>& c) {
  if (at.largest == nullptr) {
    adam_loop<false>(at.parameters, at.mean, at.square, at.largest, at.gradient_sum, n, c);
  } else {
    adam_loop<true>(at.parameters, at.mean, at.square, at.largest, at.gradient_sum, n, c);
  }
}

// Computes base^exponent by multiplications alone.
double whole_power(double base, std::int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power *= base;
    base *= base;
  }
  return power;
}

template <class T>
AdamCoefficients<T> adam_coefficients(const AdamOptions& options, std::int64_t steps,
                                      const LayerRates& layer, const Update<T>& update) {
  const double correction1 = 1 - whole_power(options.beta1, steps);
  const double correction2 = 1 - whole_power(options.beta2, steps);
  const double added_decay = options.decoupled ? 0 : layer.weight_decay;
  const double shortening = options.decoupled ? layer.rate * layer.weight_decay : 0;
  return {.gradient = {.factor = update.gradient_factor,
                       .clip = update.clip,
                       .weight_decay = static_cast<T>(added_decay)},
          .beta1 = static_cast<T>(options.beta1),
          .rest1 = static_cast<T>(1 - options.beta1),
          .beta2 = static_cast<T>(options.beta2),
          .rest2 = static_cast<T>(1 - options.beta2),
          .root_of_correction2 = static_cast<T>(std::sqrt(correction2)),
          .epsilon = static_cast<T>(options.epsilon),
          .step_size = static_cast<T>(layer.rate / correction1),
          .kept = static_cast<T>(1 - shortening)};
}

}  // namespace

template <class T>
Adam<T>::Adam(ParameterLayout layout, const AdamOptions& options, std::vector<GroupOptions> groups)
    : options_(options),
      ranges_(std::move(layout), std::move(groups), options.weight_decay, /*momentum=*/0),
      mean_(ranges_.size()),
      square_(ranges_.size()),
      largest_square_(options.amsgrad ? ranges_.size() : 0) {
  require_valid(OptimizerOptions{.kind = OptimizerKind::adam,
                                 .weight_decay = options.weight_decay,
                                 .beta1 = options.beta1,
                                 .beta2 = options.beta2,
                                 .epsilon = options.epsilon});
}

template <class T>
void Adam<T>::step(const Update<T>& update, Workers& workers) {
  const auto ranges = ranges_.of_step(update, [&](const LayerRates& layer) {
    return adam_coefficients(options_, steps_.of(layer.index), layer, update);
  });
  steps_.count(ranges_.layers(), update.unreached);
  for_each_piece(update, ranges, workers,
                 [&](std::size_t begin, std::size_t end, const AdamCoefficients<T>& coefficients) {
                   const AdamArrays<T> at{
                       .parameters = update.parameters.data() + begin,
                       .mean = mean_.data() + begin,
                       .square = square_.data() + begin,
                       .largest = options_.amsgrad ? largest_square_.data() + begin : nullptr,
                       .gradient_sum = update.gradient_sum.data() + begin};
                   with_vectors([&]() __attribute__((always_inline)) {
                     adam_loops(at, end - begin, coefficients);
                   });
                 });
}

template <class T>
void Adam<T>::visit_state(StateVisitor& state) {
  steps_.visit_state(state, kAdamSteps, ranges_.layers());
  state.values(kAdamMean, std::span<T>(mean_));
  state.values(kAdamSquare, std::span<T>(square_));
  state.values(kAdamLargestSquare, std::span<T>(largest_square_));
}

template class Adam<float>;
template class Adam<double>;

}  // namespace rubato
