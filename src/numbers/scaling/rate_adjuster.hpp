#pragma once

#include <cstdint>

#include <rubato/base/parse.hpp>
#include <rubato/numbers/adjustments.hpp>
#include <rubato/numbers/rule.hpp>

namespace rubato {

/// Applies adjustments to the answers of a rule.
class RateAdjuster {
 public:
  explicit RateAdjuster(const RuleAdjustments& adjustments) : adjustments_(adjustments) {}

  /// Throws Error for an adjustment of a memory that the optimizer does not have, and for one that
  /// the rule makes itself.
  void require_effect(const OptimizerNumbers& optimizer, const Rule& rule) const;

  /// Returns the adjusted answer of `rule`; called once for each step, in order. Throws Error if
  /// the rule has answered a number that is adjusted.
  [[nodiscard]] Rates adjust(Rates rates, const RuleInput& input, const Rule& rule);

  /// Returns whether there was a step before the next one.
  [[nodiscard]] bool knows_last() const { return batch_size_ != 0; }
  /// Visits the batch size and the factor of the step before, which every training remembers, so
  /// that a fork from any state sees its first change.
  void visit_state(NumberVisitor& numbers) {
    numbers.count(batch_size_);
    numbers.number(factor_);
  }

 private:
  void change_memory(OptimizerAnswer& answer, const RuleInput& input, double factor) const;

  RuleAdjustments adjustments_;
  // The batch size of the last step and the rule's factor on its rate; 0 before the first.
  std::int64_t batch_size_ = 0;
  double factor_ = 0;
};

}  // namespace rubato
