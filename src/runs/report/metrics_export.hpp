#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/records.hpp>

#include "base/core/seconds.hpp"

namespace rubato {

/// The kinds of lines that metrics.jsonl may have: "step", "epoch", ...
[[nodiscard]] std::vector<std::string> metrics_kinds();

/// Writes the lines of one kind in a metrics.jsonl as CSV: a header with the names of the columns,
/// as in Python (docs/records.md), and a row for each line. All columns except lists are written;
/// fields that a line does not have are empty. A column of several numbers becomes one column for
/// each number that the file has. The file may belong to a run that is still training: a last line
/// that is incomplete is left out. Throws Error with file and line for anything that is not a line
/// of metrics, and for an unknown kind.
void write_metrics_csv(const std::filesystem::path& file, std::string_view kind,
                       const ByteSink& sink);

/// Maintains a file in the OpenMetrics text format, which Prometheus can also read through the
/// textfile collector of its node exporter: the numbers of the newest step, of the newest epoch and
/// of the training as a whole, and whether it is running. The file is replaced as a whole, at most
/// once a second and after each epoch, so readers never see a partial one.
///
/// The name of a metric is rubato_ followed by the record and the column (docs/records.md), with
/// the unit at the end: rubato_step_wall_seconds, rubato_epoch_test_accuracy_ratio. All metrics are
/// gauges with the label `run`. Values that were not measured are left out.
class OpenMetrics final : public Observer {
 public:
  /// `run` is the label that tells runs apart if one collector reads the files of several.
  OpenMetrics(std::filesystem::path file, std::string run);
  /// Records in the file that the training is no longer running. Errors are ignored.
  ~OpenMetrics() override;
  OpenMetrics(const OpenMetrics&) = delete;
  OpenMetrics& operator=(const OpenMetrics&) = delete;

  // These functions throw OutputError when the file cannot be written; on_added() does so before
  // training starts.
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
  // Time since the file was last written.
  Stopwatch since_;
};

}  // namespace rubato
