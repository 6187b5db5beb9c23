#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <rubato/steps/step_source.hpp>

#include "growing_lines.hpp"
#include "runs/report/view/run_view.hpp"

namespace rubato {

/// A run as its folder tells of it, whoever trains it, or has trained it: its view, read from
/// config.toml, metrics.jsonl as it grows, and summary.json. Nothing is written, locked, or loaded
/// that the configuration names.
class RecordedRun {
 public:
  /// The folder need not have anything in it yet.
  explicit RecordedRun(std::filesystem::path folder);

  /// Reads what has come since the last call. Throws Error for files that are none of a run.
  void update();
  [[nodiscard]] const RunView& view() const { return view_; }
  /// Whether it has a summary.
  [[nodiscard]] bool has_ended() const { return view_.phase == RunView::Phase::ended; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  // A file that is read again when it has changed.
  struct WholeFile {
    std::optional<std::filesystem::file_time_type> written{};

    // Whether it is another one than before; it may have gone.
    bool has_changed(const std::filesystem::path& file);
  };

  void begin_anew();
  void read_configuration_file();
  void read_metrics();
  void read_summary();
  void take_line(std::string_view text);
  void take_step(const nlohmann::json& line);
  void take_epoch(const nlohmann::json& line);
  // What follows from all that was read.
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
  // Of all steps and tests.
  double seconds_ = 0;
  // Of the newest steps, older ones counting less.
  double recent_samples_ = 0;
  double recent_seconds_ = 0;
};

}  // namespace rubato
