// The optimizer, Lookahead around it, and the adjustments of what a rule answers it.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
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

}  // namespace

StepPart optimizer_part() {
  return {.prefix = "optimizer.",
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
            return {
                .remembered = remembered_values(options.optimizer, group_options(options.groups)),
                .scratch = facts.scratch,
                .squares = facts.squares};
          }};
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
  }};
}

}  // namespace rubato
