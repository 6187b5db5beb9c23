#include "adascale_rule.hpp"

#include "base/core/check.hpp"

namespace rubato {

Rates AdaScaleRule::rates(const RuleInput& input) {
  RUBATO_CHECK(!input.groups.empty(), "AdaScale needs the gradient norms of every group");
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

void AdaScaleRule::visit_state(NumberVisitor& numbers) {
  // A larger number is damage, and must not make this allocate.
  constexpr std::int64_t kMostGroups = 1'000'000;
  auto groups = static_cast<std::int64_t>(estimator_.groups());
  numbers.number(scale_);
  numbers.count(groups);
  numbers.require(groups >= 1 && groups < kMostGroups);
  while (estimator_.groups() < static_cast<std::size_t>(groups)) estimator_.add_group();
  estimator_.visit_state(numbers);
}

}  // namespace rubato
