#include <rubato/scaling/constant_rule.hpp>

namespace rubato {

Rates ConstantRule::rates(const RuleInput& input) {
  return {.learning_rate = input.base_learning_rate, .update_rate = input.base_learning_rate};
}

}  // namespace rubato
