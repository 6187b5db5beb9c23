#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/text/output_fields.hpp"
#include "base/core/text/text.hpp"
#include "runs/config/values/trace_source.hpp"

// Checkpoints on a cluster that fails: `rubato simulate --mtbf`.
namespace rubato::app {

/// "4h", "90m", "30s" or a number of seconds, in seconds. Throws Error.
[[nodiscard]] double parse_duration(std::string_view text);

/// A checkpoint after each of so many steps, and what that gives.
struct CheckpointChoice {
  std::int64_t steps = 0;
  /// The time of these steps.
  double seconds = 0;
  /// The mean over kFailureSeeds trainings with other failures; 0 if one of them never ends.
  double samples_per_hour = 0;
};
inline constexpr std::uint64_t kFailureSeeds = 20;

/// A training on a cluster that fails every `mtbf` seconds on average.
struct FailureRow {
  std::vector<std::pair<std::string, std::string>> options{};
  double mtbf = 0;
  /// Samples per hour without failures and without checkpoints.
  double undisturbed = 0;
  /// The interval sqrt(2 C M) for checkpoints of C seconds and a mean time M between failures, by
  /// J. W. Young, "A first order approximation to the optimum checkpoint interval" (1974).
  CheckpointChoice young{};
  /// The interval of J. T. Daly, "A higher order estimate of the optimum checkpoint interval for
  /// restart dumps" (2006), equation 37.
  CheckpointChoice daly{};
  /// The best of intervals whose numbers of steps grow by a sixth; empty if the training never ends
  /// with any of them.
  std::optional<CheckpointChoice> best{};
};

/// Their intervals for the same training. Throws Error unless its cluster has a time for a
/// checkpoint and none of the arguments that this sets: checkpoint-steps, mtbf, mtbf-seed.
/// `after_each`, if not empty, is called after each simulation.
[[nodiscard]] FailureRow checkpoints_for(const RunConfiguration& run, const RunSteps& steps,
                                         std::optional<std::int64_t> samples, double mtbf,
                                         const std::function<void()>& after_each = {});

[[nodiscard]] std::string failure_table(std::span<const FailureRow> rows, LineWidth width = {});
[[nodiscard]] std::string failure_json(std::span<const FailureRow> rows);
[[nodiscard]] JsonForm<std::span<const FailureRow>> failure_form();

}  // namespace rubato::app
