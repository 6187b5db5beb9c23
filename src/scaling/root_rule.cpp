#include <cmath>

#include <rubato/scaling/root_rule.hpp>

namespace rubato {

Rates RootRule::rates(const RuleInput& input) {
  const double rate = input.base_learning_rate * std::sqrt(input.scale());
  return {.learning_rate = rate, .update_rate = rate};
}

}  // namespace rubato
