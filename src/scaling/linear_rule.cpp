#include <rubato/scaling/linear_rule.hpp>

namespace rubato {

Rates LinearRule::rates(const RuleInput& input) {
  const double rate = input.base_learning_rate * input.scale();
  return {.learning_rate = rate, .update_rate = rate};
}

}  // namespace rubato
