#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/numbers/adjustments.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/throw_error.hpp"
#include "rate_adjuster.hpp"

namespace rubato {

namespace {

enum class HalfLife { steps, samples };
constexpr std::array<Choice<HalfLife>, 2> kHalfLives{
    {{HalfLife::steps, "steps"}, {HalfLife::samples, "samples"}}};

void require_memory(bool asked, bool there, std::string_view what, std::string_view accepted) {
  if (asked && !there) {
    throw_error("{}, which the optimizer does not have; accepted: {}", what, accepted);
  }
}

// Replaces a number that the rule must not have answered.
void answer_power(std::optional<double>& answer, const std::optional<double>& number, double scale,
                  std::string_view name, const Rule& rule) {
  if (answer) {
    throw_error("rule {} answers {} itself; accepted: a memory in samples of other numbers",
                rule.name(), name);
  }
  if (number) answer = exact::pow(*number, scale);
}

}  // namespace

MemoriesInSamples parse_memories(const std::string& text) {
  Spec spec(text.empty() ? std::string() : fmt::format(":{}", text));
  const auto in_samples = [&spec](std::string_view key) {
    return spec.choice(key, HalfLife::steps, kHalfLives) == HalfLife::samples;
  };
  const MemoriesInSamples memories{.momentum = in_samples("momentum"),
                                   .beta1 = in_samples("beta1"),
                                   .beta2 = in_samples("beta2"),
                                   .lookahead = in_samples("lookahead")};
  spec.finish();
  return memories;
}

BatchChange parse_batch_change(const std::string& text) {
  if (text.empty()) return {};
  if (text.find('=') == std::string::npos) {
    return {.all = parse_choice("treatment", text, kTreatments)};
  }
  Spec spec(fmt::format(":{}", text));
  const Unset unset{"keep"};
  const BatchChange change{.mean = spec.choice("m", unset, kTreatments),
                           .squares = spec.choice("v", unset, kTreatments)};
  spec.finish();
  return change;
}

void RateAdjuster::require_effect(const OptimizerNumbers& optimizer, const Rule& rule) const {
  const MemoriesInSamples& memories = adjustments_.memories;
  constexpr std::string_view kAdam = "with optimizer adam, adamw or muon";
  require_memory(memories.momentum, optimizer.momentum.has_value(), "a momentum in samples",
                 "with a momentum above 0");
  require_memory(memories.beta1, optimizer.beta1.has_value(), "beta1 in samples", kAdam);
  require_memory(memories.beta2, optimizer.beta2.has_value(), "beta2 in samples", kAdam);
  const BatchChange& change = adjustments_.on_batch_change;
  require_memory(change.of_mean() != Treatment::keep, optimizer.has_mean,
                 "a batch change treats the mean (m) of gradients",
                 "with a momentum above 0, or optimizer adam, adamw or muon");
  require_memory(change.squares.value_or(Treatment::keep) != Treatment::keep, optimizer.has_squares,
                 "a batch change treats the mean squares (v) of gradients", kAdam);
  if (change.squares == Treatment::rescale && optimizer.of_minibatches) {
    throw Error(
        "a batch change rescales the mean squares (v) of minibatches, which do not depend on the "
        "batch; accepted: v=keep, v=reset, or second-moment=mean");
  }
  require_memory(
      rule.needs().metric_norms, optimizer.has_metric,
      fmt::format("rule {} measures gradients in the metric of the optimizer", rule.name()),
      "with optimizer adam or adamw, or without metric=optimizer");
  if (!rule.needs().adam) return;
  require_memory(true, optimizer.beta1.has_value(),
                 fmt::format("rule {} answers the betas of Adam", rule.name()), kAdam);
  if (memories.beta1 || memories.beta2) {
    throw_error("rule {} answers the betas itself; accepted: without betas in samples",
                rule.name());
  }
}

Rates RateAdjuster::adjust(Rates rates, const RuleInput& input, const Rule& rule) {
  const double scale = input.scale();
  OptimizerAnswer& answer = rates.optimizer;
  const MemoriesInSamples& memories = adjustments_.memories;
  double shortening = 1;
  if (memories.momentum) {
    answer_power(answer.momentum, input.optimizer.momentum, scale, "momentum", rule);
    // A momentum beside betas is Muon's, an average of gradients instead of their sum.
    if (!input.optimizer.beta1) {
      shortening = (1 - *answer.momentum) / (1 - *input.optimizer.momentum);
      rates.update_rate *= shortening;
    }
  }
  if (memories.beta1) answer_power(answer.beta1, input.optimizer.beta1, scale, "beta1", rule);
  if (memories.beta2) answer_power(answer.beta2, input.optimizer.beta2, scale, "beta2", rule);
  // A rate of 0 shortens nothing.
  if (adjustments_.decay == DecayRule::timescale && rates.learning_rate > 0) {
    rates.weight_decay_factor *= scale * (input.base_learning_rate / rates.learning_rate);
  }
  // The rate of a sum of gradients has no batch size in it.
  const bool sums = rule.reduction() == GradientReduction::sum;
  const double rate = sums ? rates.update_rate : rates.learning_rate;
  const double factor = input.base_learning_rate > 0
                            ? rate / input.base_learning_rate * (sums ? 1 : shortening)
                            : factor_;
  if (batch_size_ != 0 && batch_size_ != input.batch_size) change_memory(answer, input, factor);
  batch_size_ = input.batch_size;
  factor_ = factor;
  // The rate that is reported is the one that is used.
  rates.learning_rate *= shortening;
  return rates;
}

void RateAdjuster::change_memory(OptimizerAnswer& answer, const RuleInput& input,
                                 double factor) const {
  const BatchChange& change = adjustments_.on_batch_change;
  if (change.of_mean() == Treatment::reset) answer.mean_factor = 0;
  if (change.of_mean() == Treatment::rescale && factor > 0 && factor_ > 0) {
    const bool has_rate = input.optimizer.momentum_form == MomentumForm::mxnet;
    answer.mean_factor = has_rate ? factor / factor_ : factor_ / factor;
  }
  if (!input.optimizer.has_squares) return;
  if (change.of_squares() == Treatment::reset) answer.forget_squares = true;
  // The variance of a minibatch is that of every batch.
  if (change.of_squares() == Treatment::rescale && !input.optimizer.of_minibatches) {
    answer.variance_factor =
        static_cast<double>(batch_size_) / static_cast<double>(input.batch_size);
  }
}

}  // namespace rubato
