#include "step_meter.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rubato {

template <class T>
StepMeter<T>::StepMeter(const ParameterLayout& layout, const MeterNeeds& needs,
                        std::vector<double> weight_decays)
    : layout_(layout),
      needs_(needs),
      weight_decays_(std::move(weight_decays)),
      blocks_(layout.layer_ends),
      gradient_meter_(blocks_),
      pair_(needs.groups ? blocks_ : no_blocks_),
      weight_meter_(blocks_),
      groups_(weight_decays_.size()),
      layers_(layout.layers()) {}

template <class T>
bool StepMeter<T>::measure(const StepSum<T>& sum, double size, std::span<const T> parameters,
                           Workers& workers) {
  const std::span<const T> values = sum.values();
  gradient_norm_.reset();
  from_pair_ = false;
  if (!needs_.any()) return is_finite(values, workers);
  const bool finite = gradient_meter_.measure(values, workers);
  // The meter's squares are those of the sum; this factor makes them those of the mean.
  const double of_mean = 1 / (size * size);
  double square = 0;
  for (const double layer : gradient_meter_.layers()) square += layer * of_mean;
  gradient_norm_ = std::sqrt(square);
  if (needs_.groups) measure_groups(sum, size, finite, workers);
  if (needs_.layers) measure_layers(of_mean, parameters, workers);
  return finite;
}

template <class T>
void StepMeter<T>::measure_groups(const StepSum<T>& sum, double size, bool finite,
                                  Workers& workers) {
  const double of_mean = 1 / (size * size);
  std::fill(groups_.begin(), groups_.end(), GradientNorms());
  sum_squares(blocks_, sum.squares(), [&](std::size_t layer) -> double& {
    return groups_[layout_.layer_groups[layer]].minibatch_square;
  });
  for (GradientNorms& group : groups_) group.minibatch_square /= size;
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    groups_[layout_.layer_groups[layer]].mean_square += gradient_meter_.layers()[layer] * of_mean;
  }
  from_pair_ =
      finite && measure_pair(std::span<const T>(sum.values()).first(layout_.size()), size, workers);
}

// A single minibatch does not reveal its noise. Makes the groups' norms those of this step and the
// one before, if both had one minibatch. Returns whether it did.
template <class T>
bool StepMeter<T>::measure_pair(std::span<const T> gradient, double size, Workers& workers) {
  if (size != 1) pair_.forget();
  if (size != 1 || !pair_.take(gradient, workers)) return false;
  std::fill(groups_.begin(), groups_.end(), GradientNorms());
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    GradientNorms& group = groups_[layout_.layer_groups[layer]];
    group.minibatch_square +=
        (gradient_meter_.layers()[layer] + pair_.previous_layers()[layer]) / 2;
    group.mean_square += pair_.mean_layers()[layer];
  }
  return true;
}

template <class T>
void StepMeter<T>::measure_layers(double of_mean, std::span<const T> parameters, Workers& workers) {
  static_cast<void>(weight_meter_.measure(parameters, workers));
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    layers_[layer] = {.weight_square = weight_meter_.layers()[layer],
                      .gradient_square = gradient_meter_.layers()[layer] * of_mean,
                      .weight_decay = weight_decays_[layout_.layer_groups[layer]]};
  }
}

template <class T>
void StepMeter<T>::set_applied(double factor, std::span<const T> changed, Workers& workers) {
  if (!needs_.layers) return;
  if (!changed.empty()) static_cast<void>(gradient_meter_.measure(changed, workers));
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    layers_[layer].gradient_square = gradient_meter_.layers()[layer] * (factor * factor);
  }
}

template class StepMeter<float>;
template class StepMeter<double>;

}  // namespace rubato
