#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <rubato/loop/records.hpp>
#include <rubato/steps/step_source.hpp>

#include "runs/report/metrics_file.hpp"
#include "runs/report/run_view.hpp"

namespace rubato {

/// The view of a run that any process trains or has trained, read from its folder: from
/// config.toml, metrics.jsonl as it grows, and summary.json. Writes and locks nothing, and loads
/// nothing that the configuration names.
class RecordedRun {
 public:
  /// The folder may still be empty.
  explicit RecordedRun(std::filesystem::path folder);

  /// Reads everything that was written since the last call. Throws Error if the files are not those
  /// of a run.
  void update();
  [[nodiscard]] const RunView& view() const { return view_; }
  /// Whether it has a summary.
  [[nodiscard]] bool has_ended() const { return view_.phase == RunView::Phase::ended; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  // The state of a file that is read again when it has changed.
  struct WholeFile {
    std::optional<std::filesystem::file_time_type> written{};

    // Whether it has changed since the last call; it may also have appeared or disappeared.
    bool has_changed(const std::filesystem::path& file);
  };

  void begin_anew();
  void read_configuration_file();
  void read_metrics();
  void read_summary();
  void take(const StepRecord& step);
  void take(const EpochRecord& epoch);
  // Updates the parts of the view that depend on several files.
  void conclude();

  std::filesystem::path folder_;
  GrowingLines lines_;
  WholeFile config_;
  WholeFile summary_;
  RunView view_;
  Budget budget_;
  Spent spent_;
  std::int64_t whole_epochs_ = 0;
  std::int64_t samples_of_whole_ = 0;
  // Duration of all steps and tests.
  double seconds_ = 0;
  // Samples and duration of the newest steps; older steps have less weight.
  double recent_samples_ = 0;
  double recent_seconds_ = 0;
};

}  // namespace rubato
