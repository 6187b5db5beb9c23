#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <rubato/runs/records.hpp>
#include <rubato/steps/step_source.hpp>

#include "base/core/text/output_fields.hpp"

namespace rubato {

/// The loss or the accuracy that a training is to reach; one of them is set.
struct LearningTarget {
  std::optional<double> loss{};
  /// A share, 0 to 1.
  std::optional<double> accuracy{};
};

/// The outcome of a training, with the results of each epoch.
struct TrainingOutcome {
  struct Epoch {
    /// Steps and samples of the whole training until its end.
    std::int64_t steps = 0;
    std::int64_t samples = 0;
    std::optional<ClockTime> time{};
    /// On the test set; without one, that of the training.
    double loss = 0;
    std::optional<double> accuracy{};
  };
  std::vector<Epoch> epochs{};
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// The sum over the steps of the minibatches that their busiest core computes.
  std::int64_t substeps = 0;
  std::optional<ClockTime> time{};
  RunEnd end = RunEnd::completed;

  /// The loss and the accuracy at the end; the loss is NaN if it diverged.
  [[nodiscard]] double loss() const;
  [[nodiscard]] std::optional<double> accuracy() const;
  /// The first epoch that has reached the target; null if none has.
  [[nodiscard]] const Epoch* reached(const LearningTarget& target) const;
  /// Modelled seconds without devices, in lost attempts at steps and in restarts.
  [[nodiscard]] double lost_seconds() const;
};

/// The time as it is read back from the metrics of a run, which have hours: rounded a little.
[[nodiscard]] std::optional<ClockTime> as_recorded(std::optional<ClockTime> time);

/// TrainingOutcome as JSON, and back. Throws Error for JSON of something else.
[[nodiscard]] JsonForm<TrainingOutcome> outcome_form();
[[nodiscard]] TrainingOutcome training_outcome(const nlohmann::json& json);

/// A training as its metrics and its summary tell of it.
struct RecordedTraining {
  struct Step {
    std::int64_t batch_size = 0;
    std::int64_t cores = 0;
    std::optional<ClockTime> time{};
  };
  /// Cores that died in a step.
  struct Fault {
    /// Counted from 0.
    std::int64_t step = 0;
    std::vector<std::int64_t> cores{};
    /// How often the step was begun in vain, and the minibatches that were to be computed then.
    std::int64_t attempts = 0;
    std::int64_t minibatches = 0;
  };
  std::vector<Step> steps{};
  std::vector<Fault> faults{};
  TrainingOutcome outcome{};
  /// True if its losses are those of a test set.
  bool has_test = false;
  std::string weights_sha256{};
  /// Seconds of this machine for a sample, and for the evaluation of an epoch.
  double seconds_per_sample = 0;
  double seconds_per_epoch = 0;
};

/// Reads the folder of a run of minibatches of `minibatch` samples. Throws Error if it has not
/// ended, or if its files are damaged.
[[nodiscard]] RecordedTraining recorded_training(const std::filesystem::path& run,
                                                 std::int64_t minibatch);

}  // namespace rubato
