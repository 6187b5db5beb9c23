#pragma once

#include <string_view>
#include <vector>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref x gain(S), measured for each parameter group separately (AdaScaleEstimator). It
/// equals the linear rule where gradients are all noise and the constant rule where they are all
/// signal; in between it depends on the gradients of this step and those before it. The reported
/// learning rate and gain are those of all groups together.
class AdaScaleRule final : public Rule {
 public:
  explicit AdaScaleRule(const AdaScaleOptions& options = {}) : estimator_(options) {}

  [[nodiscard]] std::string_view name() const override { return "adascale"; }
  [[nodiscard]] RuleNeeds needs() const override { return {.group_norms = true}; }
  /// Requires `input.groups`.
  [[nodiscard]] Rates rates(const RuleInput& input) override;

  void visit_state(NumberVisitor& numbers) override;

  [[nodiscard]] const AdaScaleEstimator& estimator() const { return estimator_; }

 private:
  AdaScaleEstimator estimator_;
  // The scale of the step before; 0 before the first.
  double scale_ = 0;
  std::vector<double> gains_;
};

}  // namespace rubato
