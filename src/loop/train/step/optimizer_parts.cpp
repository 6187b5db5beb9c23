// Three parts of a step are declared here: the optimizer, Lookahead around it, and the adjustments
// of what a rule answers. States are bound to the texts of their options. These texts have to stay
// as older versions wrote them: the options of all methods of that time come first, with their
// defaults, and those of newer methods follow. Another optimizer in a fork begins with an empty
// memory, unless both remember the same.

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "loop/optim/make_optimizer.hpp"
#include "step_choices.hpp"
#include "step_part.hpp"

namespace rubato {

namespace {

std::string text_of(const OptimizerOptions& o) {
  // States of older versions have these options of all methods, with their defaults. Those of newer
  // methods follow.
  std::vector<std::pair<std::string_view, std::string>> values{
      {"momentum", fmt::to_string(o.momentum)},
      {"weight_decay", fmt::to_string(o.weight_decay)},
      {"nesterov", "false"},
      {"trust", "0.001"},
      {"betas", "0.9 0.999"},
      {"amsgrad", "false"},
      {"alpha", "0.99"},
      {"centered", "false"},
      {"lr_decay", "0"},
      {"initial", "0"},
      {"epsilon", "1e-08"}};
  MethodFacts facts = facts_of(o.method);
  for (auto& [name, value] : facts.bound) {
    const auto known = std::ranges::find(values, name, [](const auto& of) { return of.first; });
    if (known == values.end()) {
      values.emplace_back(name, std::move(value));
    } else {
      known->second = std::move(value);
    }
  }
  std::string text(optimizer_name(o.method));
  for (const auto& [name, value] : values) {
    if (!value.empty()) fmt::format_to(std::back_inserter(text), " {} {}", name, value);
  }
  return text;
}

std::string text_of(const LookaheadOptions& o) {
  // The states of older versions do not mention the weights.
  return fmt::format("k {} alpha {} start {}{}", o.k, o.alpha,
                     choice_name(kLookaheadStarts, o.start),
                     o.weights == LookaheadWeights::slow ? "" : " weights fast");
}

std::string text_of(const RuleAdjustments& adjustments) {
  const MemoriesInSamples& in_samples = adjustments.memories;
  const BatchChange& change = adjustments.on_batch_change;
  return fmt::format("momentum {} beta1 {} beta2 {} lookahead {} decay {} mean {} squares {}",
                     in_samples.momentum, in_samples.beta1, in_samples.beta2, in_samples.lookahead,
                     choice_name(kDecayRules, adjustments.decay),
                     choice_name(kTreatments, change.of_mean()),
                     choice_name(kTreatments, change.of_squares()));
}

// A number of the optimizer that rules may answer.
RecordColumn<StepRecord> answer_column(std::string name,
                                       std::optional<double> OptimizerAnswer::*member,
                                       std::string help, std::string title,
                                       std::string label = {}) {
  const std::string tag = "train/" + name;
  return {{.name = std::move(name),
           .help = std::move(help),
           .tag = tag,
           .figure = {kRateSection, std::move(title), std::move(label)}},
          of_part(&StepRecord::optimizer, member)};
}

std::vector<RecordColumn<StepRecord>> answer_columns() {
  return {answer_column("momentum", &OptimizerAnswer::momentum,
                        "momentum, if rule or schedule set it", "Momentum and betas", "momentum"),
          answer_column("beta1", &OptimizerAnswer::beta1, "beta1, if rule or schedule set it",
                        "Momentum and betas", "beta1"),
          answer_column("beta2", &OptimizerAnswer::beta2, "beta2, if the rule answers it",
                        "Momentum and betas", "beta2"),
          answer_column("epsilon", &OptimizerAnswer::epsilon, "epsilon, if the rule answers it",
                        "Epsilon"),
          answer_column("mean_factor", &OptimizerAnswer::mean_factor,
                        "factor of momentum or Adam's mean before the step; 0 forgets it",
                        "Change of the optimizer's memory", "factor of the mean"),
          answer_column("variance_factor", &OptimizerAnswer::variance_factor,
                        "factor of the variance in Adam's mean squares before the step",
                        "Change of the optimizer's memory", "factor of the variance"),
          {{.name = "forgets_squares",
            .help = "true where Adam's mean squares begin anew with the step",
            .tag = "train/forgets_squares"},
           [](const StepRecord& step) {
             return step.optimizer.forget_squares ? std::optional(true) : std::nullopt;
           },
           [](StepRecord& step, const Cell& cell) {
             step.optimizer.forget_squares = std::get<bool>(cell);
             return true;
           }},
          {{.name = "weight_decay",
            .help = "weight decay, if it is not that of the options",
            .tag = "train/weight_decay",
            .figure = {kRateSection, "Weight decay"}},
           &StepRecord::weight_decay}};
}

}  // namespace

StepPart optimizer_part() {
  return {
      .prefix = "optimizer.",
      .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
        constexpr const char* kOwn = "the user's own";
        const bool own = static_cast<bool>(options.own_optimizer);
        return {{"optimizer", own ? kOwn : text_of(options.optimizer), OnFork::free},
                {.name = "optimizer_memory",
                 .value = own ? kOwn : memory_kind(options.optimizer),
                 .on_fork = OnFork::anew,
                 .memory = "optimizer",
                 .before = "optimizer"}};
      },
      .needs = [](const TrainOptions& options) -> PartNeeds {
        if (options.own_optimizer) return {.remembered = options.own_optimizer.remembered};
        const MethodFacts facts = facts_of(options.optimizer.method);
        return {.remembered = remembered_values(options.optimizer, group_options(options.groups)),
                .scratch = facts.scratch,
                .squares = facts.squares};
      },
      .conflicts = {{.choice = "rule",
                     .why = [](const StepChoices& step) -> std::string {
                       const bool sums = step.rule.reduction() == GradientReduction::sum;
                       if (!sums || step.follows_sums) return {};
                       return fmt::format("{} sums gradients, which the optimizer cannot follow",
                                          step.rule.name());
                     },
                     .accepted = "optimizer sgd or lars"}},
      .columns = answer_columns,
      .columns_after = "gain"};
}

StepPart lookahead_part() {
  return {.prefix = "lookahead",
          .bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
            return {{"lookahead", options.lookahead ? text_of(*options.lookahead) : "none",
                     OnFork::free}};
          },
          .needs = [](const TrainOptions& options) -> PartNeeds {
            if (!options.lookahead) return {};
            return {.remembered = Lookahead<float>::kRemembered,
                    .tests_others = options.lookahead->weights == LookaheadWeights::slow};
          }};
}

StepPart adjustments_part() {
  return {.bound = [](const TrainOptions& options) -> std::vector<BoundValue> {
            const bool none = options.adjustments == RuleAdjustments();
            return {{"adjustments", none ? "" : text_of(options.adjustments), OnFork::free}};
          },
          .conflicts = {{.choice = "memory",
                         .why = [](const StepChoices& step) -> std::string {
                           const bool counts = step.options.adjustments.memories.lookahead;
                           return counts && !step.options.lookahead
                                      ? "Lookahead counts samples, and there is no Lookahead"
                                      : "";
                         },
                         .accepted = "with lookahead"}}};
}

}  // namespace rubato
