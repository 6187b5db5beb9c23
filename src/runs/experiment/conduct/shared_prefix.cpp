#include "shared_prefix.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/state.hpp>
#include <rubato/numbers/rule.hpp>
#include <rubato/steps/plan.hpp>

#include "runs/config/chosen_parts.hpp"
#include "runs/run/workload/run_steps.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kLeastShare = 10;

// Returns whether the rule is a function of the batch size that multiplies the base rate by 1 at
// the reference batch, and treats momentum as the optimizer does.
bool is_plain_at_reference(const RunConfiguration& run) {
  const std::vector<std::string_view> built_in = rule_names();
  if (std::ranges::find(built_in, run.rule->names().front()) == built_in.end()) return false;
  const std::unique_ptr<Rule> rule = run.rule->make();
  const RuleNeeds needs = rule->needs();
  if (needs.group_norms || needs.parameter_norms || rule->momentum_form() ||
      rule->reduction() != GradientReduction::mean || !numbers_of(*rule).empty()) {
    return false;
  }
  constexpr double kAnyRate = 0.1;
  const Rates rates = rule->rates({.batch_size = run.reference_batch,
                                   .minibatch_size = run.minibatch,
                                   .reference_batch_size = run.reference_batch,
                                   .base_learning_rate = kAnyRate});
  return rates.learning_rate == kAnyRate && rates.update_rate == kAnyRate &&
         rates.weight_decay_factor == 1 && rates.gain == 1 && rates.group_factors.empty() &&
         rates.layer_factors.empty();
}

bool may_share(const RunConfiguration& run) {
  return run.from.empty() && run.clock == Clock::real && run.batch.text() == "fixed" &&
         !run.tensorboard && run.checkpoint_every == RunConfiguration().checkpoint_every &&
         !run.iterations && !run.samples && !run.hours && !run.money && run.patience == 0 &&
         own_rule_name(run.rule.text()).empty() && is_plain_at_reference(run);
}

// The number of steps before the first one of another batch than the reference; 0 if it is less
// than a tenth of the run, or if there is no other batch.
std::int64_t steps_at_reference(const RunConfiguration& run, std::int64_t samples) {
  constexpr std::int64_t kMostEpochs = 10'000;
  const RunSteps steps = load_run_steps(run);
  const Trace* const trace = std::get_if<Trace>(&steps);
  if (trace == nullptr || run.epochs > kMostEpochs) return 0;
  Planner planner(*trace, plan_options(run, samples, run.epochs));
  std::optional<std::int64_t> other;
  std::int64_t all = 0;
  for (std::int64_t epoch = 0; epoch < run.epochs; ++epoch) {
    const std::optional<EpochPlan> plan = planner.next();
    if (!plan) break;
    for (const StepPlan& step : plan->steps) {
      if (!other && step.batch_size != run.reference_batch) other = step.index.value();
      ++all;
    }
  }
  return other && *other * kLeastShare >= all ? *other : 0;
}

}  // namespace

std::vector<std::optional<SharedPrefix>> shared_prefixes(std::span<const PlannedRun> runs,
                                                         DataFacts& facts) {
  std::vector<std::optional<SharedPrefix>> shared(runs.size());
  // The first run of each kind, and the number of its steps that others may share.
  std::map<std::string, SharedPrefix> first;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RunConfiguration same = runs[i].configuration;
    if (!may_share(same)) continue;
    same.rule = "constant";
    const auto [found, is_new] = first.try_emplace(to_toml(same), SharedPrefix{.trained_by = i});
    if (is_new) {
      found->second.steps = steps_at_reference(same, facts.samples_of(same));
    } else if (found->second.steps > 0) {
      shared[i] = found->second;
    }
  }
  return shared;
}

void keep_prefix(RunConfiguration& configuration, std::int64_t steps) {
  configuration.checkpoint_every = fmt::format("{}steps", steps);
  configuration.keep = kLeastShare + 1;
}

}  // namespace rubato
