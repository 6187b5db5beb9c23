#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/loop/observer.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/test_metrics.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/batch_policy.hpp>

namespace rubato {

// The parts that a configuration chooses among the built-in ones and the user's own.

/// The optimizer that --optimizer names.
struct OptimizerChoice {
  OptimizerMethod method{};
  /// Empty for a built-in one.
  std::optional<OwnOptimizer> own{};
};

/// The reducer that --reduce names.
struct ReducerChoice {
  /// Empty for a built-in one.
  std::optional<OwnReducer> own{};
};

/// The metrics that --metric names.
struct MetricChoice {
  TestMetrics built_in{};
  /// The user's own in their order, and their names in the text.
  std::vector<OwnMetric> own{};
  std::vector<std::string> own_names{};
};

/// The metric of --watch. Throws Error for a metric of the user's own that --metric does not
/// compute.
[[nodiscard]] WatchedMetric watched_metric(const RunConfiguration& run);
/// Returns "log2" for "own:name=log2", the rule of a run of an experiment that rubato.compare()
/// trains in Python's process; empty for any other.
[[nodiscard]] std::string_view own_rule_name(std::string_view rule);

/// The patterns in the text of --no-decay.
[[nodiscard]] std::vector<std::string> no_decay_patterns(const std::string& no_decay);

/// How a run divides the samples of its data set into steps; 0 epochs mean no end.
[[nodiscard]] PlanOptions plan_options(const RunConfiguration& run, std::int64_t samples,
                                       std::int64_t epochs);

/// Whether --batch names a policy that decides the batch sizes, so that the trace does not
/// determine the steps.
[[nodiscard]] bool has_batch_policy(const RunConfiguration& run);

/// The policy of --batch; null if there is none. Throws Error.
[[nodiscard]] std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run);

}  // namespace rubato
