#include "scaling/adascale_rule.hpp"

#include <rubato/core/error.hpp>

#include "core/check.hpp"

namespace rubato {

Rates AdaScaleRule::rates(const RuleInput& input) {
  RUBATO_CHECK(!input.groups.empty(), "AdaScale is told the gradient norms of every group");
  while (estimator_.groups() < input.groups.size()) estimator_.add_group();
  const double scale = input.scale();
  if (scale_ != 0 && scale != scale_) estimator_.change_scale(scale_, scale);
  scale_ = scale;
  if (input.from_pair) {
    estimator_.update_from_pair(input.groups, scale);
  } else if (input.has_whole_minibatches()) {
    estimator_.update(input.groups, input.minibatches(), scale);
  }

  gains_.resize(input.groups.size());
  for (std::size_t i = 0; i < gains_.size(); ++i) gains_[i] = estimator_.gain(scale, i);
  const double gain = estimator_.gain(scale);
  return {.learning_rate = input.base_learning_rate * gain,
          .update_rate = input.base_learning_rate,
          .gain = gain,
          .group_factors = gains_};
}

std::vector<double> AdaScaleRule::state() const {
  std::vector<double> numbers = estimator_.state();
  numbers.insert(numbers.begin(), {scale_, static_cast<double>(estimator_.groups())});
  return numbers;
}

void AdaScaleRule::load_state(std::span<const double> state) {
  if (state.size() < 2 || !(state[1] >= 1 && state[1] < 1e6)) {
    throw Error("the state of rule adascale is damaged");
  }
  while (estimator_.groups() < static_cast<std::size_t>(state[1])) estimator_.add_group();
  estimator_.load_state(state.subspan(2));
  scale_ = state[0];
}

}  // namespace rubato
