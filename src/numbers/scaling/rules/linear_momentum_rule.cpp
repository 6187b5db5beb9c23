#include "linear_momentum_rule.hpp"

namespace rubato {

Rates LinearMomentumRule::rates(const RuleInput& input) {
  const double minibatch_scale =
      static_cast<double>(input.minibatch_size) / static_cast<double>(input.reference_batch_size);
  return {.learning_rate = input.base_learning_rate * input.scale(),
          .update_rate = input.base_learning_rate * minibatch_scale,
          .weight_decay_factor =
              static_cast<double>(input.batch_size) / static_cast<double>(input.minibatch_size),
          .gain = input.scale()};
}

}  // namespace rubato
