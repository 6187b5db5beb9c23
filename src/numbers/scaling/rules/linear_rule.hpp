#pragma once

#include <string_view>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref x B / B_ref.
///
/// Goyal et al. 2017, "Accurate, large minibatch SGD: training ImageNet in 1 hour", section 2.1: k
/// steps of batch B_ref at rate lr have about the same effect as one step of batch k B_ref at rate
/// k lr, as long as the gradient changes little over the k steps.
class LinearRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "linear"; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

}  // namespace rubato
