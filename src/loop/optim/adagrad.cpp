#include "adagrad.hpp"

#include <cmath>
#include <span>
#include <utility>

#include <rubato/loop/optimizer.hpp>

#include "base/machine/instruction_set.hpp"

namespace rubato {

namespace {

constexpr std::string_view kAdagradSteps = "optimizer.adagrad.steps";
constexpr std::string_view kAdagradSquareSum = "optimizer.adagrad.square_sum";

template <class T>
[[gnu::always_inline]] inline void adagrad_loop(T* __restrict parameters, T* __restrict square_sum,
                                                const T* __restrict gradient_sum, std::size_t n,
                                                AdagradCoefficients<T> c) {
  for (std::size_t i = 0; i < n; ++i) {
    const T g = applied_gradient(gradient_sum[i], parameters[i], c.gradient);
    const T s = square_sum[i] + g * g;
    square_sum[i] = s;
    parameters[i] -= quotient(c.step_size * g, std::sqrt(s) + c.epsilon);
  }
}

template <class T>
AdagradCoefficients<T> adagrad_coefficients(const AdagradOptions& options, std::int64_t steps,
                                            const LayerRates& layer, const Update<T>& update) {
  const double fallen = 1 + static_cast<double>(steps - 1) * options.lr_decay;
  return {.gradient = {.factor = update.gradient_factor,
                       .clip = update.clip,
                       .weight_decay = static_cast<T>(layer.weight_decay)},
          .epsilon = static_cast<T>(options.epsilon),
          .step_size = static_cast<T>(layer.rate / fallen)};
}

}  // namespace

template <class T>
Adagrad<T>::Adagrad(ParameterLayout layout, const AdagradOptions& options,
                    std::vector<GroupOptions> groups)
    : options_(options),
      ranges_(std::move(layout), std::move(groups), options.weight_decay, /*momentum=*/0),
      square_sum_(ranges_.size(), static_cast<T>(options.initial_accumulator)) {
  require_valid(OptimizerOptions{.kind = OptimizerKind::adagrad,
                                 .weight_decay = options.weight_decay,
                                 .lr_decay = options.lr_decay,
                                 .initial_accumulator = options.initial_accumulator,
                                 .epsilon = options.epsilon});
}

template <class T>
void Adagrad<T>::step(const Update<T>& update, Workers& workers) {
  const auto ranges = ranges_.of_step(update, [&](const LayerRates& layer) {
    return adagrad_coefficients(options_, steps_.of(layer.index), layer, update);
  });
  steps_.count(ranges_.layers(), update.unreached);
  for_each_piece(
      update, ranges, workers,
      [&](std::size_t begin, std::size_t end, const AdagradCoefficients<T>& coefficients) {
        with_vectors([&]() __attribute__((always_inline)) {
          adagrad_loop(update.parameters.data() + begin, square_sum_.data() + begin,
                       update.gradient_sum.data() + begin, end - begin, coefficients);
        });
      });
}

template <class T>
void Adagrad<T>::visit_state(StateVisitor& state) {
  steps_.visit_state(state, kAdagradSteps, ranges_.layers());
  state.values(kAdagradSquareSum, std::span<T>(square_sum_));
}

template class Adagrad<float>;
template class Adagrad<double>;

}  // namespace rubato
