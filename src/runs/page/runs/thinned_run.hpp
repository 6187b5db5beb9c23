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

#include "runs/page/thinned/buckets.hpp"
#include "runs/page/thinned/buckets_json.hpp"
#include "runs/page/thinned/substep_map.hpp"

namespace rubato::page {

/// Something that happened in a run: a mark in its charts.
struct Mark {
  /// One of kMarks.
  std::string_view kind;
  /// The step that it belongs to, counted from 1.
  std::int64_t step = 0;
  /// What of it is to be known; may be empty.
  std::string text{};
  /// After that step; zeros where the metrics do not have it.
  Position at{};
  /// How often it happened there.
  std::int64_t count = 1;
};

/// What marks there are, and how many of each a run keeps.
inline constexpr std::string_view kFault = "core died";
inline constexpr std::string_view kRestart = "restart";
inline constexpr std::string_view kFewerCores = "fewer cores";
inline constexpr std::string_view kDiverged = "not finite";
inline constexpr std::string_view kCheckpoint = "checkpoint";
inline constexpr std::string_view kHosts = "hosts";
inline constexpr std::array<std::string_view, 6> kMarks{kFault,    kRestart,    kFewerCores,
                                                        kDiverged, kCheckpoint, kHosts};
inline constexpr std::int64_t kMostMarks = 200;

/// Where the time of a run went, in seconds.
struct RunTimes {
  // Of all threads together.
  double data = 0;
  double compute = 0;
  double reduce = 0;
  // Of the clock on the wall.
  double exchange = 0;
  double update = 0;
  double wall = 0;
  double test = 0;
};

/// The same on the modelled clock.
struct ModelledTimes {
  double idle_hours = 0;
  double lost_hours = 0;
  double restart_hours = 0;
  double restarts = 0;
};

/// What the folder of a run says, as far as a page has room for it. A run that was killed, or that
/// is still being trained, has no summary, and perhaps half a line at the end of its metrics.
struct ThinnedRun {
  /// `columns` of the steps at most.
  ThinnedRun(std::string called, std::size_t columns)
      : name(std::move(called)), steps(columns), epochs(columns) {}

  /// As the user named it.
  std::string name;
  /// summary.json; null where there is none that can be read.
  nlohmann::json summary{};
  /// config.toml, and what it says of each option; empty where it is not there or cannot be read.
  std::string configuration{};
  std::map<std::string, std::string, std::less<>> options{};

  Buckets steps;
  Buckets epochs;
  static constexpr std::size_t kMapColumns = 96;
  static constexpr std::size_t kMapRows = 48;
  SubstepMap substeps{kMapColumns, kMapRows};
  /// In the order of the steps; of each kind the first kMostMarks.
  std::vector<Mark> marks{};
  /// Each entry counts how often that kind of kMarks occurred.
  std::array<std::int64_t, kMarks.size()> mark_counts{};
  /// After the last step.
  Position last{};
  /// The line of the last epoch; null where there is none.
  nlohmann::json last_epoch{};
  bool has_clock = false;
  RunTimes times{};
  ModelledTimes clock{};
  /// Of a step of its timeline, where it has one.
  std::vector<Json> step_figures{};
  /// Lines of hosts.log.
  std::vector<std::string> hosts{};
  /// What could not be read, and what else a reader has to know, in sentences.
  std::vector<std::string> warnings{};

  void add_mark(Mark mark);
};

/// Reads the folder of a run. Throws Error where it has no metrics.
[[nodiscard]] ThinnedRun read_run(const std::string& given, std::size_t columns);

/// Reads metrics.jsonl as far as it goes into `run`; `checkpoints` are the steps after which there
/// is one, in ascending order. Throws Error where the file is not there.
void read_metrics(const std::filesystem::path& file, const std::vector<std::int64_t>& checkpoints,
                  ThinnedRun& run);

}  // namespace rubato::page
