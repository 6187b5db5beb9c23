#include "run_warnings.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/steps/trace.hpp>

#include "base/machine/kernel_variables.hpp"
#include "runs/config/values/batch_policy.hpp"
#include "runs/config/values/fault_options.hpp"

namespace rubato {

namespace {

// The batch size of all steps; empty if they differ, or training decides it.
std::optional<std::int64_t> only_batch_size(const RunConfiguration& run, const RunSteps& steps) {
  const Trace* const trace = std::get_if<Trace>(&steps);
  if (trace == nullptr || has_batch_policy(run)) return std::nullopt;
  const std::int64_t first = trace->steps().front().batch_size;
  const bool same = std::ranges::all_of(
      trace->steps(), [first](const TraceStep& step) { return step.batch_size == first; });
  return same ? std::optional(first) : std::nullopt;
}

// Returns "lr 0.05", unless the rate depends on gradients.
std::string rate_of(Rule& rule, const RunConfiguration& run, std::int64_t batch) {
  const RuleNeeds needs = rule.needs();
  if (needs.group_norms || needs.parameter_norms) return "a rate of its own";
  const Rates rates = rule.rates({.batch_size = batch,
                                  .minibatch_size = run.minibatch,
                                  .reference_batch_size = run.reference_batch,
                                  .base_learning_rate = run.learning_rate});
  return fmt::format("lr {:.6g}", rates.learning_rate);
}

}  // namespace

std::optional<std::string> idle_cores(const RunSteps& steps, const RunConfiguration& run) {
  if (!cores_of(steps, run).all_said) return std::nullopt;
  return fmt::format("--cores {} does nothing: {} says how many there are in every step", run.cores,
                     source_of(steps));
}

std::vector<std::string> idle_arguments(const RunRequest& request, const RunSteps& steps,
                                        bool redrawn) {
  const RunConfiguration& run = request.run;
  std::vector<std::string> lines;
  const auto cores = idle_cores(steps, run);
  if (cores && request.given.contains("cores")) lines.push_back(*cores);
  const std::int64_t most = cores_of(steps, run).most;
  for (const Straggler& straggler : *run.straggler) {
    if (straggler.core.value() < most) continue;
    lines.push_back(fmt::format("--straggler core={} does nothing: the cores are 0 to {}",
                                straggler.core.value(), most - 1));
  }
  if (auto bound = openmp_binding()) lines.push_back(*std::move(bound));
  if (redrawn && request.given.contains("log-steps")) {
    lines.push_back(fmt::format(
        "--log-steps {} does nothing on a terminal, where a bar shows every step", run.log_steps));
  }
  return lines;
}

std::optional<std::string> scaled_rate(const RunRequest& request, const RunSteps& steps) {
  const RunConfiguration& run = request.run;
  if (!request.given.contains("lr") || request.given.contains("ref-batch")) return std::nullopt;
  // The user's own rules are called only in steps.
  const std::vector<std::string_view> built_in = rule_names();
  if (std::ranges::find(built_in, Spec(run.rule).name()) == built_in.end()) return std::nullopt;
  const std::optional<std::int64_t> batch = only_batch_size(run, steps);
  const auto rule = run.extensions.rules.make(run.rule);
  if (!batch || *batch == run.reference_batch || !rule->follows_batch_size()) return std::nullopt;
  return fmt::format(
      "--lr {0} is for batch {1}: rule {2} takes steps of batch {3} with {4}\n"
      "with --ref-batch {3} they are taken with lr {0}",
      run.learning_rate, run.reference_batch, run.rule, *batch, rate_of(*rule, run, *batch));
}

std::optional<std::string> missed_target(const RunConfiguration& run, const TrainResult& result) {
  if (!run.target_accuracy) return std::nullopt;
  const auto& [percent, best] = *run.target_accuracy;
  const auto last = result.final_test ? result.final_test->accuracy : std::nullopt;
  if (result.final_test && !last) {
    return fmt::format(
        "--target-accuracy {} %: the outputs do not tell the classes apart, and have no accuracy",
        percent);
  }
  const double accuracy = (best ? result.best_test_accuracy : last).value_or(0) * 100;
  if (accuracy >= percent) return std::nullopt;
  return fmt::format("{}test accuracy {:.2f} % is below --target-accuracy {} %",
                     best ? "the best " : "", accuracy, percent);
}

}  // namespace rubato
