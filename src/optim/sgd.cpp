#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <rubato/collective/kernels.hpp>
#include <rubato/core/error.hpp>
#include <rubato/optim/sgd.hpp>

namespace rubato {

namespace {

// Parameters that one task updates: below this, handing them to another thread costs more than the
// update.
constexpr std::size_t kShard = std::size_t{1} << 16;

}  // namespace

template <class T>
Sgd<T>::Sgd(std::size_t size, const SgdOptions& options)
    : options_(options), size_(size), velocity_(options.momentum == 0 ? 0 : size) {
  if (!(options.momentum >= 0 && options.momentum < 1)) {
    throw Error(fmt::format("momentum {}: accepted are values from 0 to below 1", options.momentum));
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
  const auto update = [&](std::size_t begin, std::size_t count) {
    sgd_step(parameters.subspan(begin, count),
             velocity_.empty() ? std::span<T>() : std::span(velocity_).subspan(begin, count),
             gradient_sum.subspan(begin, count), coefficients);
  };
  if (size_ <= kShard) {
    update(0, size_);
    return;
  }
  const std::size_t shards = (size_ + kShard - 1) / kShard;
  workers.for_each(static_cast<std::int64_t>(shards), [&](std::int64_t shard, int) {
    const std::size_t begin = static_cast<std::size_t>(shard) * kShard;
    update(begin, std::min(kShard, size_ - begin));
  });
}

template class Sgd<float>;
template class Sgd<double>;

}  // namespace rubato
