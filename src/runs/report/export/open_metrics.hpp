#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <rubato/loop/observer.hpp>
#include <rubato/loop/records.hpp>

#include "base/core/system/stopwatch.hpp"

namespace rubato {

/// Keeps a file in the text format of OpenMetrics, which Prometheus reads, too, through the
/// textfile collector of its node exporter: the numbers of the newest step, of the newest epoch and
/// of the training as a whole, and whether it is running. The file is always whole: it is replaced,
/// at most once a second, and after each epoch.
///
/// A metric is called rubato_ and the record and the column (docs/records.md), with the unit at the
/// end: rubato_step_wall_seconds, rubato_epoch_test_accuracy_ratio. All are gauges, and all have
/// the label `run`. What was not measured is left out.
class OpenMetrics final : public Observer {
 public:
  /// `run` tells runs apart whose files are read by one collector.
  OpenMetrics(std::filesystem::path file, std::string run);
  /// Says in the file that the training is not running any more. Errors are ignored.
  ~OpenMetrics() override;
  OpenMetrics(const OpenMetrics&) = delete;
  OpenMetrics& operator=(const OpenMetrics&) = delete;

  // All throw OutputError when the file cannot be written; on_added() before anything is trained.
  void on_added(Training& training) override;
  void on_step(Training& training, const StepRecord& step) override;
  void on_epoch(Training& training, const EpochRecord& epoch) override;

 private:
  void write(bool running);

  std::filesystem::path file_;
  std::string run_;
  std::optional<StepRecord> step_;
  std::optional<EpochRecord> epoch_;
  TrainResult result_;
  // Since it was written last.
  Stopwatch since_;
};

}  // namespace rubato
