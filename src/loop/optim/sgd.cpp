#include "sgd.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/optimizer.hpp>

namespace rubato {

template <class T>
Sgd<T>::Sgd(ParameterLayout layout, const SgdOptions& options, std::vector<GroupOptions> groups)
    : options_(options),
      ranges_(std::move(layout), std::move(groups), options.weight_decay, options.momentum) {
  require_valid(OptimizerOptions{.momentum = options.momentum,
                                 .weight_decay = options.weight_decay,
                                 .nesterov = options.nesterov});
  if (ranges_.any_momentum()) velocity_.resize(ranges_.size());
}

template <class T>
void Sgd<T>::step(const Update<T>& update, Workers& workers) {
  const auto ranges = ranges_.of_step(update, [&](const LayerRates& layer) {
    // Without momentum both forms are the same.
    const MomentumForm form = layer.momentum == 0 ? MomentumForm::pytorch : options_.momentum_form;
    return coefficients_of(layer, update, form, options_.nesterov);
  });
  step_ranges(update, std::span<T>(velocity_), ranges, workers);
}

template class Sgd<float>;
template class Sgd<double>;

namespace {

// The norms are those of a sum of `summed` gradients; the paper's are those of a mean.
double local_rate(const ParameterNorms& norms, double weight_decay, double trust, double summed) {
  const double weight = std::sqrt(norms.weight_square);
  const double gradient = std::sqrt(norms.gradient_square);
  if (weight == 0 || gradient == 0) return 1;
  return trust * summed * weight / (gradient + weight_decay * weight);
}

}  // namespace

template <class T>
Lars<T>::Lars(ParameterLayout layout, const LarsOptions& options, std::vector<GroupOptions> groups)
    : options_(options),
      ranges_(std::move(layout), std::move(groups), options.weight_decay, options.momentum) {
  require_valid(OptimizerOptions{.kind = OptimizerKind::lars,
                                 .momentum = options.momentum,
                                 .weight_decay = options.weight_decay,
                                 .trust = options.trust});
  if (ranges_.any_momentum()) velocity_.resize(ranges_.size());
}

template <class T>
void Lars<T>::step(const Update<T>& update, Workers& workers) {
  if (update.layers.size() != ranges_.layers()) {
    throw Error(
        fmt::format("LARS needs the norms of {} tensors and has those of {}; accepted: one "
                    "of Update::layers for each",
                    ranges_.layers(), update.layers.size()));
  }
  const auto ranges = ranges_.of_step(update, [&](LayerRates layer) {
    if (layer.layer_wise) {
      layer.rate *=
          local_rate(update.layers[layer.index], layer.weight_decay, options_.trust, update.summed);
    }
    return coefficients_of(layer, update, options_.momentum_form, /*nesterov=*/false);
  });
  step_ranges(update, std::span<T>(velocity_), ranges, workers);
}

template class Lars<float>;
template class Lars<double>;

}  // namespace rubato
