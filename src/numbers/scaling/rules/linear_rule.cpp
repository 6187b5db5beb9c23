#include "linear_rule.hpp"

namespace rubato {

Rates LinearRule::rates(const RuleInput& input) {
  return scaled(input, input.scale());
}

}  // namespace rubato
