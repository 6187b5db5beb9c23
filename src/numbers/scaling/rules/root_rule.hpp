#pragma once

#include <string_view>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref x sqrt(B / B_ref).
///
/// Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks", section 5:
/// the variance of the update is the same for every batch size.
class RootRule final : public Rule {
 public:
  [[nodiscard]] std::string_view name() const override { return "root"; }
  [[nodiscard]] Rates rates(const RuleInput& input) override;
};

}  // namespace rubato
