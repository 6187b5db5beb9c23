#include <cmath>

#include <rubato/scaling/root_rule.hpp>

namespace rubato {

Rates RootRule::rates(const RuleInput& input) {
  return scaled(input, std::sqrt(input.scale()));
}

}  // namespace rubato
