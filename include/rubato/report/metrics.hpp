#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <rubato/train/monitor.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

/// Writes metrics.jsonl: a JSON object on a line for each step and each epoch, as they come. A line
/// is handed to the operating system before the next step begins.
///
///     {"kind": "step", "step", "epoch", "batch", "cores", "scale", "lr", "gain", "iterations",
///      "loss", "gradient_norm", "noise_scale", "measured_gain", "substeps": [of each core],
///      "seconds": {"data", "compute", "reduce", "update", "wall"}}      (StepRecord, StepTiming)
///     {"kind": "epoch", "epoch", "steps", "samples", "train_loss", "test_loss", "test_accuracy",
///      "test_top_k_accuracy", "seconds": {"train", "test"}}             (EpochRecord)
///     {"kind": "monitor", "step", "tensor", "of": "parameter" or "gradient", "norm", "mean",
///      "min", "max"}                                                    (TensorStatistics)
///
/// What was not measured is left out.
///
/// A number that is not finite is null.
class MetricsWriter final : public Observer {
 public:
  /// Throws Error when the file cannot be opened.
  explicit MetricsWriter(std::filesystem::path path);

  /// All throw Error when the line cannot be written.
  void on_step(const StepRecord& step) override;
  void on_epoch(const EpochRecord& epoch) override;
  /// For a Monitor.
  void write(const StepPlan& step, std::span<const TensorStatistics> tensors);

 private:
  void write_line(const std::string& line);

  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace rubato
