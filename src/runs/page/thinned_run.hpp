#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "buckets.hpp"
#include "html.hpp"
#include "runs/report/record_cells.hpp"

namespace rubato::page {

/// An event of a run, which is a mark in its charts.
struct Mark {
  /// One of kMarks.
  std::string_view kind;
  /// The step that it belongs to, counted from 1.
  std::int64_t step = 0;
  /// Details of the event; may be empty.
  std::string text{};
  /// Position after that step; zeros if the metrics do not have the step.
  Position at{};
  /// Number of times that it happened in that step.
  std::int64_t count = 1;
};

/// The kinds of marks, and the maximum number of each that a run keeps.
inline constexpr std::string_view kFault = "core died";
inline constexpr std::string_view kRestart = "restart";
inline constexpr std::string_view kFewerCores = "fewer cores";
inline constexpr std::string_view kDiverged = "not finite";
inline constexpr std::string_view kCheckpoint = "checkpoint";
inline constexpr std::string_view kHosts = "hosts";
inline constexpr std::array<std::string_view, 6> kMarks{kFault,    kRestart,    kFewerCores,
                                                        kDiverged, kCheckpoint, kHosts};
inline constexpr std::int64_t kMostMarks = 200;

/// The time of a run by activity, in seconds.
struct RunTimes {
  // Sums over all threads.
  double data = 0;
  double compute = 0;
  double reduce = 0;
  // Wall-clock times.
  double exchange = 0;
  double update = 0;
  double wall = 0;
  double test = 0;
};

/// The time of a run on the modelled clock that was not spent in steps.
struct ModelledTimes {
  double idle_hours = 0;
  double lost_hours = 0;
  double restart_hours = 0;
  double join_hours = 0;
  double redone_hours = 0;
  double checkpoint_hours = 0;
  double restarts = 0;
};

/// The contents of a run's folder, as far as a page has room for them. A run that was killed or is
/// still training has no summary, and its metrics may end with an incomplete line.
struct ThinnedRun {
  /// `columns` is the maximum number of buckets of steps and of epochs.
  ThinnedRun(std::string called, std::size_t columns)
      : name(std::move(called)), steps(columns), epochs(columns) {}

  /// Folder as the user named it.
  std::string name;
  /// Contents of summary.json; null if it is missing or cannot be read.
  nlohmann::json summary{};
  /// Contents of config.toml, and the values of its options; empty if it is missing or cannot be
  /// read.
  std::string configuration{};
  std::map<std::string, std::string, std::less<>> options{};

  Buckets steps;
  Buckets epochs;
  static constexpr std::size_t kMapColumns = 96;
  static constexpr std::size_t kMapRows = 48;
  SubstepMap substeps{kMapColumns, kMapRows};
  /// Marks in the order of their steps; the first kMostMarks of each kind.
  std::vector<Mark> marks{};
  /// Number of events of each kind of kMarks.
  std::array<std::int64_t, kMarks.size()> mark_counts{};
  /// Position after the last step.
  Position last{};
  /// Values of the last epoch; empty if there is none.
  Cells last_epoch{};
  bool has_clock = false;
  RunTimes times{};
  ModelledTimes clock{};
  /// Figures of a step, if the run has a timeline.
  std::vector<Json> step_figures{};
  /// Charts, and a chapter in HTML, of what its events changed; empty if nobody has asked `rubato
  /// whatif`.
  Json whatif_section{};
  std::string whatif_chapter{};
  /// Tells which steps of a fork are where; empty if it is none.
  Rows past{};
  /// Lines of hosts.log.
  std::vector<std::string> hosts{};
  /// Sentences on files that could not be read, and on anything else that a reader must know.
  std::vector<std::string> warnings{};

  void add_mark(Mark mark);
};

/// Reads the folder of a run. Throws Error if it has no metrics.
[[nodiscard]] ThinnedRun read_run(const std::string& given, std::size_t columns);

/// Reads the valid part of metrics.jsonl into `run`; `checkpoints` are the steps after which there
/// is a checkpoint, in ascending order. Throws Error if the file does not exist.
void read_metrics(const std::filesystem::path& file, const std::vector<std::int64_t>& checkpoints,
                  ThinnedRun& run);

/// Columns of numbers by their names (ColumnInfo::name), with a row for each record; NaN stands for
/// a missing value.
using NumberColumns = std::map<std::string, std::vector<double>, std::less<>>;

/// The records of a run in memory. Columns whose names no schema has are left out, among them the
/// user's own metrics.
struct RecordColumns {
  NumberColumns steps{};
  NumberColumns epochs{};
  NumberColumns faults{};
};

/// Adds these records to `run` as read_metrics() adds those of a file. Columns that are not as long
/// as `step` or `epoch` are left out. Throws Error if a number is out of range.
void take_records(const RecordColumns& records, ThinnedRun& run);

/// The step with the median duration of a timeline (timeline_json() in runs/report/timeline.hpp) as
/// figures: the activities of its threads and of its cores, with the meetings of their sums. Empty
/// if the file does not exist or has no complete step; invalid events are skipped.
[[nodiscard]] std::vector<Json> step_figures(const std::filesystem::path& timeline);

}  // namespace rubato::page
