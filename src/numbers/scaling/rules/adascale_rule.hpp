#pragma once

#include <string_view>
#include <vector>

#include <rubato/numbers/adascale_estimator.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// lr(B) = lr_ref x gain(S), measured for each parameter group by itself (AdaScaleEstimator): as
/// the linear rule where gradients are all noise, as the constant one where they are all signal,
/// and in between as the gradients of this very step and those before it say. What it reports as
/// learning rate and gain are those of all groups together.
class AdaScaleRule final : public Rule {
 public:
  explicit AdaScaleRule(const AdaScaleOptions& options = {}) : estimator_(options) {}

  [[nodiscard]] std::string_view name() const override { return "adascale"; }
  [[nodiscard]] RuleNeeds needs() const override { return {.group_norms = true}; }
  /// `input.groups` must be there.
  [[nodiscard]] Rates rates(const RuleInput& input) override;

  void visit_state(NumberVisitor& numbers) override;

  [[nodiscard]] const AdaScaleEstimator& estimator() const { return estimator_; }

 private:
  AdaScaleEstimator estimator_;
  // Of the step before; 0 before the first.
  double scale_ = 0;
  std::vector<double> gains_;
};

}  // namespace rubato
