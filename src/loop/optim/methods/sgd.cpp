#include "sgd.hpp"

#include <utility>

#include <rubato/loop/optimizer.hpp>

#include "grouped_sgd.hpp"

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

}  // namespace rubato
