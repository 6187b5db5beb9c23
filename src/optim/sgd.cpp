#include <cmath>

#include <fmt/format.h>

#include <rubato/collective/kernels.hpp>
#include <rubato/core/error.hpp>
#include <rubato/optim/sgd.hpp>

namespace rubato {

template <class T>
Sgd<T>::Sgd(std::size_t size, const SgdOptions& options)
    : options_(options), size_(size), velocity_(options.momentum == 0 ? 0 : size) {
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    throw Error(
        fmt::format("momentum {}: accepted are values from 0 to below 1", options.momentum));
  }
  if (!(options.weight_decay >= 0) || !std::isfinite(options.weight_decay)) {
    throw Error(
        fmt::format("weight decay {}: accepted are values of at least 0", options.weight_decay));
  }
  if (options.nesterov && options.momentum == 0) {
    throw Error("Nesterov momentum needs a momentum above 0");
  }
}

template <class T>
void Sgd<T>::step(std::span<T> parameters, std::span<const T> gradient_sum,
                  std::int64_t minibatches, GradientReduction reduction, const Rates& rates,
                  Workers& workers) {
  const bool mean = reduction == GradientReduction::mean;
  const SgdCoefficients<T> coefficients{
      .gradient_factor = mean ? T{1} / static_cast<T>(minibatches) : T{1},
      .learning_rate = static_cast<T>(rates.update_rate),
      .momentum = static_cast<T>(options_.momentum),
      .weight_decay = static_cast<T>(options_.weight_decay * rates.weight_decay_factor),
      .nesterov = options_.nesterov};
  workers.for_each_range(size_, [&](std::size_t begin, std::size_t end) {
    sgd_step(parameters.subspan(begin, end - begin),
             velocity_.empty() ? std::span<T>() : std::span(velocity_).subspan(begin, end - begin),
             gradient_sum.subspan(begin, end - begin), coefficients);
  });
}

template class Sgd<float>;
template class Sgd<double>;

}  // namespace rubato
