#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rubato/loop/gradient_transform.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/optimizer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/runs/run_configuration.hpp>

namespace rubato {

// What a configuration chooses among the built-in parts and those of the user's own.

/// Empty where it is a built-in one.
[[nodiscard]] std::optional<OwnOptimizer> own_optimizer(const RunConfiguration& run);
[[nodiscard]] std::optional<OwnReducer> own_reducer(const RunConfiguration& run);
/// In their order.
[[nodiscard]] std::vector<OwnGradientTransform> gradient_transforms(const RunConfiguration& run);
[[nodiscard]] std::vector<OwnMetric> own_metrics(const RunConfiguration& run);
/// Those of --metric that are built in, as parse_test_metrics() takes them.
[[nodiscard]] std::string built_in_metrics(const RunConfiguration& run);
/// That of --watch. Throws Error for a metric of the user's own that --metric does not compute.
[[nodiscard]] WatchedMetric watched_metric(const RunConfiguration& run);
/// Whether it is kOwn, and the program that has such a rule is another one.
[[nodiscard]] bool is_elsewhere(const std::string& rule, const Extensions& own);
/// "log2" of "own:name=log2", the rule of a run of an experiment that rubato.compare() trains in
/// Python's process; empty of any other.
[[nodiscard]] std::string_view own_rule_name(std::string_view rule);

// The readings of their options: throw Error for text that chooses nothing.

void require_rule(const std::string& text, const Extensions& own);
void require_schedule(const std::string& text, const Extensions& own);
void require_optimizer(const std::string& text, const Extensions& own);
void require_transforms(const std::string& text, const Extensions& own);
void require_sampler(const std::string& text, const Extensions& own);
void require_reduction(const std::string& text, const Extensions& own);
void require_metrics(const std::string& text, const Extensions& own);
void require_watched(const std::string& text, const Extensions& own);
void require_batch_policy(const std::string& text, const Extensions& own);

}  // namespace rubato
