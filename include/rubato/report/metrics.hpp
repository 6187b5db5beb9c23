#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <rubato/train/records.hpp>

namespace rubato {

/// Writes metrics.jsonl: a JSON object on a line for each step and each epoch, as they come. A line
/// is handed to the operating system before the next step begins.
///
///     {"kind": "step", "step", "epoch", "batch", "cores", "scale", "lr", "loss",
///      "substeps": [of each core],
///      "seconds": {"data", "compute", "reduce", "update", "wall"}}      (StepTiming)
///     {"kind": "epoch", "epoch", "steps", "samples", "train_loss", "test_loss", "test_accuracy",
///      "seconds": {"train", "test"}}                            (test_* where there is a test set)
///
/// A number that is not finite is null.
class MetricsWriter final : public Observer {
 public:
  /// Throws Error when the file cannot be opened.
  explicit MetricsWriter(std::filesystem::path path);

  /// Both throw Error when the line cannot be written.
  void on_step(const StepRecord& step) override;
  void on_epoch(const EpochRecord& epoch) override;

 private:
  void write_line(const std::string& line);

  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace rubato
