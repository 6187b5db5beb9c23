#include "step_meter.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rubato {

namespace {

template <class T>
NormBlocks blocks_of(const ParameterLayout& layout, std::span<const T> weights) {
  NormBlocks blocks(layout.layer_ends);
  if (!weights.empty()) blocks.weigh_by(weights);
  return blocks;
}

}  // namespace

template <class T>
StepMeter<T>::StepMeter(const ParameterLayout& layout, const MeterNeeds& needs,
                        std::vector<double> weight_decays)
    : layout_(layout),
      needs_(needs),
      weight_decays_(std::move(weight_decays)),
      diagonal_(needs.metric ? layout.size() : 0),
      blocks_(blocks_of<T>(layout, diagonal_)),
      gradient_meter_(blocks_),
      pair_(needs.groups ? blocks_ : no_blocks_),
      weight_meter_(blocks_),
      groups_(weight_decays_.size()),
      metric_groups_(needs.metric ? groups_.size() : 0),
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
  sum_groups(sum, size, 0, groups_);
  if (has_metric_) sum_groups(sum, size, 1, metric_groups_);
  from_pair_ =
      finite && measure_pair(std::span<const T>(sum.values()).first(layout_.size()), size, workers);
}

template <class T>
void StepMeter<T>::sum_groups(const StepSum<T>& sum, double size, std::size_t norm,
                              std::vector<GradientNorms>& groups) const {
  const double of_mean = 1 / (size * size);
  std::fill(groups.begin(), groups.end(), GradientNorms());
  sum_squares(
      blocks_, sum.squares(),
      [&](std::size_t layer) -> double& {
        return groups[layout_.layer_groups[layer]].minibatch_square;
      },
      norm);
  for (GradientNorms& group : groups) group.minibatch_square /= size;
  const std::span<const double> layers = gradient_meter_.layers(norm);
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    groups[layout_.layer_groups[layer]].mean_square += layers[layer] * of_mean;
  }
}

// A single minibatch does not reveal its noise. Makes the groups' norms those of this step and the
// one before, if both had one minibatch. Returns whether it did.
template <class T>
bool StepMeter<T>::measure_pair(std::span<const T> gradient, double size, Workers& workers) {
  if (size != 1) pair_.forget();
  if (size != 1 || !pair_.take(gradient, workers)) return false;
  sum_pair(0, groups_);
  if (has_metric_) sum_pair(1, metric_groups_);
  return true;
}

template <class T>
void StepMeter<T>::sum_pair(std::size_t norm, std::vector<GradientNorms>& groups) const {
  std::fill(groups.begin(), groups.end(), GradientNorms());
  for (std::size_t layer = 0; layer < layout_.layers(); ++layer) {
    GradientNorms& group = groups[layout_.layer_groups[layer]];
    group.minibatch_square +=
        (gradient_meter_.layers(norm)[layer] + pair_.previous_layers(norm)[layer]) / 2;
    group.mean_square += pair_.mean_layers(norm)[layer];
  }
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
