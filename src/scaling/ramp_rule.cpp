#include "scaling/ramp_rule.hpp"

#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>

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

std::vector<double> RampRule::state() const {
  std::vector<double> numbers = rule_->state();
  numbers.insert(numbers.begin(),
                 {static_cast<double>(batch_size_), static_cast<double>(taken_), before_, factor_});
  return numbers;
}

void RampRule::load_state(std::span<const double> state) {
  constexpr std::size_t kOwn = 4;
  if (state.size() < kOwn) throw Error("the state of a ramp is damaged");
  batch_size_ = count_of(state[0]);
  taken_ = count_of(state[1]);
  before_ = state[2];
  factor_ = state[3];
  rule_->load_state(state.subspan(kOwn));
}

}  // namespace rubato
