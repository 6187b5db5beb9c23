#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <rubato/numbers/rule.hpp>

namespace rubato {

/// Wraps another rule; when the batch size changes, the rate moves to its new value over several
/// steps, because with momentum a sudden change of the rate is a disturbance (Lin et al. 2019,
/// "Dynamic mini-batch SGD for elastic distributed training", section 4). In step k of T after a
/// change
///
///     factor = before + (k / T) (rule's - before),     k = 1 .. T
///
/// where `factor` is the rate relative to the base rate, and `before` its value when the batch size
/// changed. A change during a ramp starts a new one from the current factor.
class RampRule final : public Rule {
 public:
  /// Throws Error if `steps` is below 1.
  RampRule(std::unique_ptr<Rule> rule, std::int64_t steps);

  [[nodiscard]] std::string_view name() const override { return rule_->name(); }
  [[nodiscard]] GradientReduction reduction() const override { return rule_->reduction(); }
  [[nodiscard]] RuleNeeds needs() const override { return rule_->needs(); }
  [[nodiscard]] bool follows_batch_size() const override { return rule_->follows_batch_size(); }
  [[nodiscard]] std::optional<MomentumForm> momentum_form() const override {
    return rule_->momentum_form();
  }
  [[nodiscard]] Rates rates(const RuleInput& input) override;

  void visit_state(NumberVisitor& numbers) override;

 private:
  std::unique_ptr<Rule> rule_;
  std::int64_t steps_;
  // Batch size of the last step; 0 before the first.
  std::int64_t batch_size_ = 0;
  // Steps taken since the batch size changed; equal to steps_ outside a ramp.
  std::int64_t taken_;
  double before_ = 0;
  double factor_ = 0;
};

}  // namespace rubato
