#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <rubato/steps/step_source.hpp>

#include "runs/report/run_view.hpp"

namespace rubato {

/// The lines of a file that another process writes. That process may append lines, and cut off the
/// end to write it again, as a run does that resumes from a checkpoint.
class GrowingLines {
 public:
  explicit GrowingLines(std::filesystem::path file) : file_(std::move(file)) {}

  /// Passes each line that was added since the last call to `take`, without its line end. A last
  /// line without an end is not passed until the end is written. If lines that were passed have
  /// been removed since, calls `begin_anew` and passes all lines again. A file that does not exist
  /// has no lines. Throws Error if it cannot be read.
  void read(const std::function<void()>& begin_anew,
            const std::function<void(std::string_view line)>& take);
  /// Makes the next read() pass all lines again, without calling `begin_anew`.
  void rewind();
  /// Number of the line that was passed last, from 1.
  [[nodiscard]] std::int64_t line() const { return line_; }
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  // Length of the part that was passed, and its last bytes, which tell whether it is unchanged.
  std::int64_t bytes_ = 0;
  std::string last_bytes_;
  std::int64_t line_ = 0;
};

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
  void take_line(std::string_view text);
  void take_step(const nlohmann::json& line);
  void take_epoch(const nlohmann::json& line);
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
