#include "optim/sgd.hpp"

#include <utility>

#include <rubato/recipe/optimizer_options.hpp>

#include "grouped_sgd.hpp"

namespace rubato {

template <class T>
Sgd<T>::Sgd(ParameterLayout layout, const SgdOptions& options, std::vector<GroupOptions> groups)
    : layout_(std::move(layout)), options_(options), groups_(std::move(groups)) {
  require_valid(OptimizerOptions{.momentum = options.momentum,
                                 .weight_decay = options.weight_decay,
                                 .nesterov = options.nesterov});
  if (any_momentum(options.momentum, groups_)) velocity_.resize(layout_.size());
  ranges_.reserve(layout_.layers());
}

template <class T>
void Sgd<T>::step(const Update<T>& update, Workers& workers) {
  ranges_.clear();
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    const GroupOptions group = group_of(groups_, layout_.layer_groups[layer]);
    const LayerRates of_layer = rates_of_layer(layer, update.rates, layout_, group,
                                               options_.weight_decay, options_.momentum);
    // Without momentum the forms are one.
    const MomentumForm form =
        of_layer.momentum == 0 ? MomentumForm::pytorch : options_.momentum_form;
    append_range(ranges_, layout_.layer_ends[layer],
                 coefficients_of(of_layer, update, form, options_.nesterov));
  }
  step_ranges(update, std::span<T>(velocity_), std::span<const SgdRange<T>>(ranges_), workers);
}

template class Sgd<float>;
template class Sgd<double>;

}  // namespace rubato
