#pragma once

#include <string_view>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// The linear rule with the batch size in the gradient instead of in the rate: gradients are summed
/// over the minibatches of a step, and the rate is that of one minibatch,
///
///     update rate = lr_ref x minibatch size / B_ref,    weight decay = wd x minibatches,
///
/// so that without momentum a step equals the linear rule's, and with momentum the buffer holds
/// contributions in proportion to their samples: no correction is needed when the batch size
/// changes (compare Goyal et al. 2017, section 3, "momentum correction"). The reported learning
/// rate is the linear rule's.
class LinearMomentumRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "linear-momentum"; }
  [[nodiscard]] GradientReduction reduction() const override { return GradientReduction::sum; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

}  // namespace rubato
