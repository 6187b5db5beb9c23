#include "rules.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/core/check.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

Rates ConstantRule::rates(const RuleInput& input) {
  return scaled(input, 1);
}

Rates LinearRule::rates(const RuleInput& input) {
  return scaled(input, input.scale());
}

Rates RootRule::rates(const RuleInput& input) {
  return scaled(input, std::sqrt(input.scale()));
}

Rates RootAdamRule::rates(const RuleInput& input) {
  const double scale = input.scale();
  const auto scaled_beta = [&](const std::optional<double>& beta) -> std::optional<double> {
    if (!beta) return std::nullopt;
    if (betas_ == ScaledBetas::published) return std::max(0.0, 1 - scale * (1 - *beta));
    return exact::pow(*beta, scale);
  };
  const double root = std::sqrt(scale);
  Rates rates = scaled(input, root);
  rates.optimizer.beta1 = scaled_beta(input.optimizer.beta1);
  rates.optimizer.beta2 = scaled_beta(input.optimizer.beta2);
  if (input.optimizer.epsilon) rates.optimizer.epsilon = *input.optimizer.epsilon / root;
  return rates;
}

Rates LinearMomentumRule::rates(const RuleInput& input) {
  const double minibatch_scale =
      static_cast<double>(input.minibatch_size) / static_cast<double>(input.reference_batch_size);
  return {.learning_rate = input.base_learning_rate * input.scale(),
          .update_rate = input.base_learning_rate * minibatch_scale,
          .weight_decay_factor =
              static_cast<double>(input.batch_size) / static_cast<double>(input.minibatch_size),
          .gain = input.scale()};
}

Rates AdaScaleRule::rates(const RuleInput& input) {
  RUBATO_CHECK(!input.groups.empty(), "AdaScale needs the gradient norms of every group");
  while (estimator_.groups() < input.groups.size()) estimator_.add_group();
  const double scale = input.scale();
  if (scale_ != 0 && scale != scale_) estimator_.change_scale(scale_, scale);
  scale_ = scale;
  measure(input, metric_ == GainMetric::optimizer ? input.metric_groups : input.groups);

  const double linear = share_of_linear(input);
  const auto blended = [&](double gain) {
    return linear == 0 ? gain : exact::pow(gain, 1 - linear) * exact::pow(scale, linear);
  };
  factors_.resize(input.groups.size());
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    factors_[i] = factor(blended(estimator_.gain(scale, i)));
  }
  const double gain = blended(estimator_.gain(scale));
  return {.learning_rate = input.base_learning_rate * factor(gain),
          .update_rate = input.base_learning_rate,
          .gain = gain,
          .group_factors = factors_};
}

void AdaScaleRule::measure(const RuleInput& input, std::span<const GradientNorms> groups) {
  if (groups.empty()) return;
  if (input.from_pair) {
    estimator_.update_from_pair(groups, scale_);
  } else if (input.has_whole_minibatches()) {
    estimator_.update(groups, input.minibatches(), scale_);
  }
}

double AdaScaleRule::share_of_linear(const RuleInput& input) {
  if (linear_after_ == 0) return 0;
  if (input.epoch_size == 0) {
    throw Error("rule adascale needs the samples of an epoch for linear-after");
  }
  samples_ += input.batch_size;
  const double epochs = static_cast<double>(samples_) / static_cast<double>(input.epoch_size);
  return std::min(1.0, epochs / linear_after_);
}

double AdaScaleRule::factor(double gain) const {
  return power_ == 1 ? gain : exact::pow(gain, power_);
}

void AdaScaleRule::visit_state(NumberVisitor& numbers) {
  // A larger number is damage, and must not make this allocate.
  constexpr std::int64_t kMostGroups = 1'000'000;
  auto groups = static_cast<std::int64_t>(estimator_.groups());
  numbers.number(scale_);
  if (linear_after_ > 0) numbers.count(samples_);
  numbers.count(groups);
  numbers.require(groups >= 1 && groups < kMostGroups);
  while (estimator_.groups() < static_cast<std::size_t>(groups)) estimator_.add_group();
  estimator_.visit_state(numbers);
}

RampRule::RampRule(std::unique_ptr<Rule> rule, std::int64_t steps)
    : rule_(std::move(rule)), steps_(steps), taken_(steps) {
  if (steps < 1) throw_error("a ramp of {} steps: at least 1 is needed", steps);
}

Rates RampRule::rates(const RuleInput& input) {
  Rates rates = rule_->rates(input);
  if (batch_size_ != 0 && input.batch_size != batch_size_) {
    before_ = factor_;
    taken_ = 0;
  }
  batch_size_ = input.batch_size;
  const double base = input.base_learning_rate;
  // The factor is the gain itself, not rounded again, unless the rule gives a step another worth.
  const bool is_gain = base == 0 || rates.learning_rate == base * rates.gain;
  const double factor = is_gain ? rates.gain : rates.learning_rate / base;
  factor_ = factor;
  if (taken_ == steps_) return rates;
  ++taken_;
  const double share = static_cast<double>(taken_) / static_cast<double>(steps_);
  factor_ = before_ + share * (factor - before_);
  const double ratio = factor_ / factor;
  rates.learning_rate *= ratio;
  rates.update_rate *= ratio;
  rates.gain = is_gain ? factor_ : rates.gain * ratio;
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
