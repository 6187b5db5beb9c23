#include "root_rule.hpp"

#include <cmath>

namespace rubato {

Rates RootRule::rates(const RuleInput& input) {
  return scaled(input, std::sqrt(input.scale()));
}

}  // namespace rubato
