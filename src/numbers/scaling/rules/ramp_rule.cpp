#include "ramp_rule.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

RampRule::RampRule(std::unique_ptr<Rule> rule, std::int64_t steps)
    : rule_(std::move(rule)), steps_(steps), taken_(steps) {
  if (steps < 1) throw Error(fmt::format("a ramp of {} steps: at least 1 is needed", steps));
}

Rates RampRule::rates(const RuleInput& input) {
  Rates rates = rule_->rates(input);
  if (batch_size_ != 0 && input.batch_size != batch_size_) {
    before_ = factor_;
    taken_ = 0;
  }
  batch_size_ = input.batch_size;
  factor_ = rates.gain;
  if (taken_ == steps_) return rates;
  ++taken_;
  const double share = static_cast<double>(taken_) / static_cast<double>(steps_);
  factor_ = before_ + share * (rates.gain - before_);
  const double ratio = factor_ / rates.gain;
  rates.learning_rate *= ratio;
  rates.update_rate *= ratio;
  rates.gain = factor_;
  return rates;
}

void RampRule::visit_state(NumberVisitor& numbers) {
  numbers.count(batch_size_);
  numbers.count(taken_);
  numbers.number(before_);
  numbers.number(factor_);
  rule_->visit_state(numbers);
}

}  // namespace rubato
