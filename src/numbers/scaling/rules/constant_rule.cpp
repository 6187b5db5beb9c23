#include "constant_rule.hpp"

namespace rubato {

Rates ConstantRule::rates(const RuleInput& input) {
  return scaled(input, 1);
}

}  // namespace rubato
