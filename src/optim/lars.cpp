#include "optim/lars.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/recipe/optimizer_options.hpp>

#include "grouped_sgd.hpp"

namespace rubato {

namespace {

double local_rate(const ParameterNorms& norms, double weight_decay, double trust) {
  const double weight = std::sqrt(norms.weight_square);
  const double gradient = std::sqrt(norms.gradient_square);
  if (weight == 0 || gradient == 0) return 1;
  return trust * weight / (gradient + weight_decay * weight);
}

}  // namespace

template <class T>
Lars<T>::Lars(ParameterLayout layout, const LarsOptions& options, std::vector<GroupOptions> groups)
    : layout_(std::move(layout)), options_(options), groups_(std::move(groups)) {
  require_valid(OptimizerOptions{.kind = OptimizerKind::lars,
                                 .momentum = options.momentum,
                                 .weight_decay = options.weight_decay,
                                 .trust = options.trust});
  if (any_momentum(options.momentum, groups_)) velocity_.resize(layout_.size());
  ranges_.reserve(layout_.layers());
}

template <class T>
void Lars<T>::step(const Update<T>& update, Workers& workers) {
  if (update.layers.size() != layout_.layers()) {
    throw Error(
        fmt::format("LARS needs the norms of {} tensors and has those of {}; accepted: one "
                    "of Update::layers for each",
                    layout_.layers(), update.layers.size()));
  }
  ranges_.clear();
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    const GroupOptions group = group_of(groups_, layout_.layer_groups[layer]);
    LayerRates of_layer = rates_of_layer(layer, update.rates, layout_, group, options_.weight_decay,
                                         options_.momentum);
    if (group.layer_wise) {
      of_layer.rate *= local_rate(update.layers[layer], of_layer.weight_decay, options_.trust);
    }
    append_range(ranges_, layout_.layer_ends[layer],
                 coefficients_of(of_layer, update, options_.momentum_form, /*nesterov=*/false));
  }
  step_ranges(update, std::span<T>(velocity_), std::span<const SgdRange<T>>(ranges_), workers);
}

template class Lars<float>;
template class Lars<double>;

}  // namespace rubato
