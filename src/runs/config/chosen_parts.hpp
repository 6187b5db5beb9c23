#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/batch_policy.hpp>

namespace rubato {

// The parts that a configuration chooses among the built-in ones and the user's own.

/// The user's own part; empty if a built-in one is chosen.
[[nodiscard]] std::optional<OwnOptimizer> own_optimizer(const RunConfiguration& run);
[[nodiscard]] std::optional<OwnReducer> own_reducer(const RunConfiguration& run);
/// The transforms, and the user's own metrics, in the order in which their options name them.
[[nodiscard]] std::vector<OwnGradientTransform> gradient_transforms(const RunConfiguration& run);
[[nodiscard]] std::vector<OwnMetric> own_metrics(const RunConfiguration& run);
/// The built-in metrics of --metric, as parse_test_metrics() takes them.
[[nodiscard]] std::string built_in_metrics(const RunConfiguration& run);
/// The metric of --watch. Throws Error for a metric of the user's own that --metric does not
/// compute.
[[nodiscard]] WatchedMetric watched_metric(const RunConfiguration& run);
/// Whether the rule is kOwn and belongs to another program.
[[nodiscard]] bool is_elsewhere(const std::string& rule, const Extensions& own);
/// Returns "log2" for "own:name=log2", the rule of a run of an experiment that rubato.compare()
/// trains in Python's process; empty for any other.
[[nodiscard]] std::string_view own_rule_name(std::string_view rule);

// The readings of their options; they throw Error for text that chooses nothing.

void require_rule(const std::string& text, const Extensions& own);
void require_schedule(const std::string& text, const Extensions& own);
void require_optimizer(const std::string& text, const Extensions& own);
void require_transforms(const std::string& text, const Extensions& own);
void require_sampler(const std::string& text, const Extensions& own);
void require_reduction(const std::string& text, const Extensions& own);
void require_metrics(const std::string& text, const Extensions& own);
void require_watched(const std::string& text, const Extensions& own);
void require_batch_policy(const std::string& text, const Extensions& own);

/// Whether --batch names a policy that decides the batch sizes, so that the trace does not
/// determine the steps.
[[nodiscard]] bool has_batch_policy(const RunConfiguration& run);

/// The policy of --batch; null if there is none. Throws Error.
[[nodiscard]] std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run);

}  // namespace rubato
