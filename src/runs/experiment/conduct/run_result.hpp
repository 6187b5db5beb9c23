#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/step_source.hpp>

#include "runs/config/values/model_choice.hpp"
#include "runs/experiment/design/experiment_plan.hpp"

namespace rubato {

/// The quantity that runs are compared by, and the level above which a model has learned something.
struct Measure {
  /// Whether it is the share of the test set that is classified correctly; otherwise the test loss,
  /// for a model without classes.
  bool is_accuracy = true;
  /// Share of the largest class of the test set: the accuracy of a model that always answers the
  /// same.
  double chance = 0;

  /// Whether `one` is the better result.
  [[nodiscard]] bool better(double one, double other) const {
    return is_accuracy ? one > other : one < other;
  }
};

/// Margin, as a share, by which an accuracy has to exceed chance to count as learned.
inline constexpr double kLearned = 0.02;

/// The kinds of results, for comparing runs: how a run ended (RunEnd), and what became of its
/// model.
enum class ResultEnd {
  finished,
  diverged,
  out_of_devices,
  never_learned,
  unlearned,
  failed,
  missing,
};

struct ResultEndRow {
  ResultEnd value;
  std::string_view name;
  std::string_view help;
};
inline constexpr std::array<ResultEndRow, 7> kResultEnds{
    {{ResultEnd::finished, "finished", "it ended with a result"},
     {ResultEnd::diverged, "diverged", "the loss or the gradient became infinite or NaN"},
     {ResultEnd::out_of_devices, kOutOfDevices,
      "the availability had no devices for the rest of the training"},
     {ResultEnd::never_learned, "never learned",
      "all numbers are finite, but the test accuracy of no epoch exceeds the share of the test "
      "set's largest class by more than 2 points"},
     {ResultEnd::unlearned, "unlearned",
      "it had exceeded that share by more than 2 points, but no longer does in the end"},
     {ResultEnd::failed, "failed", "it ended with an error"},
     {ResultEnd::missing, "missing",
      "it was killed, or its memory or disk was exhausted: rubato compare --resume goes on"}}};

[[nodiscard]] constexpr std::string_view name_of(ResultEnd end) {
  return std::ranges::find(kResultEnds, end, &ResultEndRow::value)->name;
}
/// Whether such a run is called lost: it did not end with a useful model.
[[nodiscard]] constexpr bool is_lost(ResultEnd end) {
  return end != ResultEnd::finished;
}

/// Totals of a run after an epoch, counted from its beginning.
struct RunPoint {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Time and cost on the virtual clock; empty without one.
  std::optional<double> hours{};
  std::optional<double> core_hours{};
  std::optional<double> money{};

  /// Goodput: samples per hour, and per hour of a core that was paid for; empty without hours.
  [[nodiscard]] std::optional<double> samples_per_hour() const { return samples_per(hours); }
  [[nodiscard]] std::optional<double> samples_per_core_hour() const {
    return samples_per(core_hours);
  }

 private:
  [[nodiscard]] std::optional<double> samples_per(std::optional<double> spent) const {
    if (!spent || *spent <= 0) return std::nullopt;
    return static_cast<double>(samples) / *spent;
  }
};

/// The extent to which batch sizes and cores changed between the steps of a run.
struct Elasticity {
  /// Number of different batch sizes, followed by the extremes. The last step of an epoch does not
  /// count: it may have only the rest of the epoch's samples.
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

/// The result of a run.
struct RunResult {
  ResultEnd end = ResultEnd::missing;
  /// The message that explains an end other than finished: what happened, and where. May be empty.
  std::string reason{};
  /// Measure::is_accuracy.
  bool is_accuracy = true;
  /// The accuracy as a share, or the loss, after the last epoch and of the best epoch. Both are
  /// empty for a run that failed; a run that diverged or ran out of devices has at most the best
  /// value.
  std::optional<double> final_value{};
  std::optional<double> best_value{};
  std::int64_t epochs = 0;
  RunPoint last{};
  double iterations = 0;
  /// Measured on this machine.
  double wall_seconds = 0;
  /// Empty if the metrics have no steps.
  std::optional<Elasticity> elasticity{};

  /// An epoch of the curve: the totals after it, and its test result.
  struct Epoch {
    RunPoint point;
    std::optional<double> value;
  };
  std::vector<Epoch> curve{};

  /// Whether it has a final value that can be compared with others.
  [[nodiscard]] bool has_value() const { return final_value.has_value(); }
};

/// Reads the summary and the metrics of a run that has ended. Throws Error if they cannot be read,
/// or if the metrics do not have the digest that the summary states; a summary without a digest, as
/// older versions wrote it, is accepted.
[[nodiscard]] RunResult read_result(const std::filesystem::path& run, const Measure& measure);

/// The result of a run that failed; `file` contains its message.
[[nodiscard]] RunResult read_failure(const std::filesystem::path& file);

/// The totals of the run when it first reached `target`; empty if it never did.
[[nodiscard]] std::optional<RunPoint> reached(const RunResult& result, const Measure& measure,
                                              double target);

/// Facts about the data of an experiment's runs, loaded once for each data set.
class DataFacts {
 public:
  /// The measure of a run's results. Throws Error if its data cannot be read.
  [[nodiscard]] const Measure& measure_of(const RunConfiguration& configuration);
  /// The number of samples in its training set. Throws Error as measure_of() does.
  [[nodiscard]] std::int64_t samples_of(const RunConfiguration& configuration) {
    return facts_of(configuration).samples;
  }
  /// Checks before the first run begins that all runs can be done: that their data can be read,
  /// that their traces are valid and long enough, and that either all or none of their models have
  /// an accuracy. Throws Error, naming the run.
  void require_runnable(std::span<const PlannedRun> runs);

 private:
  struct Facts {
    Measure measure;
    /// Size of the training set.
    std::int64_t samples = 0;
    DataShape shape{};
  };
  const Facts& facts_of(const RunConfiguration& configuration);
  void require_steps(const RunConfiguration& configuration);

  std::map<std::string, Facts> facts_;
  // Configurations whose steps have been checked.
  std::set<std::string> checked_;
};

}  // namespace rubato
