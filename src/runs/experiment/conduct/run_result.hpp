#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/steps/step_source.hpp>

namespace rubato {

/// What is compared, and what of it is learning.
struct Measure {
  /// The share of the test set that is classified rightly, or for a model without classes the test
  /// loss.
  bool is_accuracy = true;
  /// The share of the largest class of the test set: what a model comes to that always answers the
  /// same.
  double chance = 0;

  /// Whether `one` is the better result.
  [[nodiscard]] bool better(double one, double other) const {
    return is_accuracy ? one > other : one < other;
  }
};

/// By how much an accuracy, as a share, has to exceed chance to have been learned.
inline constexpr double kLearned = 0.02;

/// How a run ended.
enum class RunEnd {
  finished,
  diverged,
  out_of_devices,
  never_learned,
  unlearned,
  failed,
  missing,
};

struct RunEndRow {
  RunEnd value;
  std::string_view name;
  std::string_view help;
};
inline constexpr std::array<RunEndRow, 7> kRunEnds{
    {{RunEnd::finished, "finished", "it has a result like any other"},
     {RunEnd::diverged, "diverged", "the loss or the gradient became infinite or NaN"},
     {RunEnd::out_of_devices, kOutOfDevices,
      "the availability had no devices for the rest of the training"},
     {RunEnd::never_learned, "never learned",
      "all numbers are finite, but the test accuracy of no epoch exceeds the share of the test "
      "set's largest class by more than 2 points"},
     {RunEnd::unlearned, "unlearned",
      "it had exceeded that share by more than 2 points, and in the end does not any more"},
     {RunEnd::failed, "failed", "it ended with an error"},
     {RunEnd::missing, "missing",
      "it was killed, or its memory or disk was exhausted: rubato compare --resume goes on"}}};

[[nodiscard]] constexpr std::string_view name_of(RunEnd end) {
  return std::ranges::find(kRunEnds, end, &RunEndRow::value)->name;
}
/// Whether such a run is called lost: what it came to is no result that anybody wanted.
[[nodiscard]] constexpr bool is_lost(RunEnd end) {
  return end != RunEnd::finished;
}

/// Where a run stands after an epoch, from its beginning.
struct RunPoint {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// On the virtual clock; where there is one.
  std::optional<double> hours{};
  std::optional<double> money{};
};

/// How much changed from step to step of a run.
struct Elasticity {
  /// How many different ones there were, and the extremes of them. The last step of an epoch does
  /// not count: it may have what was left of it.
  std::int64_t batch_sizes = 0;
  std::int64_t least_batch = 0;
  std::int64_t most_batch = 0;
  std::int64_t fewest_cores = 0;
  std::int64_t most_cores = 0;

  [[nodiscard]] bool is_constant() const {
    return least_batch == most_batch && fewest_cores == most_cores;
  }
  friend bool operator==(const Elasticity&, const Elasticity&) = default;
};

/// What a run came to.
struct RunResult {
  RunEnd end = RunEnd::missing;
  /// Of one that failed, diverged or ran out of devices: what, where, in its own words.
  std::string reason{};
  /// Measure::is_accuracy.
  bool is_accuracy = true;
  /// The accuracy as a share, or the loss, after the last epoch and of the best one. Empty of a run
  /// that failed; of one that diverged or ran out of devices there is the best only, if any.
  std::optional<double> final_value{};
  std::optional<double> best_value{};
  std::int64_t epochs = 0;
  RunPoint last{};
  double iterations = 0;
  /// Measured, on this machine.
  double wall_seconds = 0;
  /// Empty where its metrics have no steps.
  std::optional<Elasticity> elasticity{};

  /// Of each epoch, in order.
  struct Epoch {
    RunPoint point;
    std::optional<double> value;
  };
  std::vector<Epoch> curve{};

  /// Whether it has a final value that can be compared with others.
  [[nodiscard]] bool has_value() const { return final_value.has_value(); }
};

/// Reads the summary and the metrics of a run that has ended. Throws Error where they cannot be
/// read, and where the metrics are not those that the summary has the digest of; a summary without
/// one, of an older program, is believed.
[[nodiscard]] RunResult read_result(const std::filesystem::path& run, const Measure& measure);

/// The result of a run that said why it failed in `file`.
[[nodiscard]] RunResult read_failure(const std::filesystem::path& file);

/// Where the run first reached `target`; empty where it did not.
[[nodiscard]] std::optional<RunPoint> reached(const RunResult& result, const Measure& measure,
                                              double target);

}  // namespace rubato
