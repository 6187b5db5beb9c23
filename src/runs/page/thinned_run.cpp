// read_run() gathers the files of a run's folder into one object. All of them but the metrics may
// be missing, and a damaged configuration, summary or origin becomes a warning on the page instead
// of an error, because a page is most needed for runs that went wrong. The metrics are thinned
// while they are read (read_metrics()). The order matters: the check of the metrics begins with
// the steps of the summary and ends with the marks that reading the metrics adds, and the past of a
// fork needs its last step.

#include "thinned_run.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/text/json.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/toml.hpp"
#include "runs/config/values/fork_point.hpp"
#include "runs/report/timeline.hpp"
#include "runs/run/run_history.hpp"
#include "runs/whatif/whatif.hpp"
#include "whatif_chapter.hpp"

namespace rubato::page {

namespace {

namespace fs = std::filesystem;

// Options are kept as text, so that a page can show the name of a rule without loading its plug-in.
void read_options(const fs::path& file, ThinnedRun& run) {
  if (!is_there(file)) return;
  try {
    run.configuration = configuration_text(file);
    for (const TomlEntry& entry : parse_toml(run.configuration, file.string())) {
      run.options.emplace(entry.key, entry.value);
    }
  } catch (const Error& error) {
    run.warnings.push_back(fmt::format("The configuration cannot be read: {}.", error.what()));
  }
}

std::vector<std::int64_t> checkpoints_of(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  for (const fs::path& file : CheckpointFolder(folder / RunFolder::kCheckpoints, 1).files()) {
    if (const auto count = CheckpointFolder::steps_of(file)) steps.push_back(*count);
  }
  std::ranges::sort(steps);
  return steps;
}

void read_summary(const fs::path& file, ThinnedRun& run) {
  if (!is_there(file)) return;
  run.summary = nlohmann::json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (run.summary.is_object()) return;
  run.summary = nullptr;
  run.warnings.push_back(fmt::format("{} cannot be read.", file.string()));
}

// Example of a line: "2026-11-24T03:36:09Z after 20 steps, ...".
void take_hosts_line(const std::string& line, ThinnedRun& run) {
  if (line.empty()) return;
  run.hosts.push_back(line);
  constexpr std::string_view kAfter = " after ";
  const std::size_t at = line.find(kAfter);
  if (at == std::string::npos) return;
  Mark mark{.kind = kHosts, .text = line};
  const char* const begin = line.data() + at + kAfter.size();
  if (std::from_chars(begin, line.data() + line.size(), mark.step).ec == std::errc()) {
    run.add_mark(std::move(mark));
  }
}

// The summary of a run that has not ended has nothing to check.
MetricsCheck metrics_check(const fs::path& folder, const ThinnedRun& run) {
  const auto sha256 = run.summary.find("metrics_sha256");
  const bool is_known = sha256 != run.summary.end() && sha256->is_string();
  return {folder, static_cast<std::int64_t>(number_at(run.summary, "steps").value_or(0)),
          is_known ? sha256->get<std::string>() : std::string()};
}

// A page says what cannot be relied on before it shows it.
void add_changes(MetricsCheck check, ThinnedRun& run) {
  // The step in which a run diverged was not taken.
  const bool diverged = std::ranges::count(run.marks, kDiverged, &Mark::kind) > 0;
  const std::string changed =
      check.changed(static_cast<std::int64_t>(run.last[Axis::steps]) - (diverged ? 1 : 0));
  if (!changed.empty()) run.warnings.push_back(changed + ".");
}

// Says where the steps of a fork are, and the checkpoints from which they can be repeated.
void read_past(const fs::path& folder, ThinnedRun& run) {
  if (!run.options.contains("from")) return;
  const auto last = static_cast<std::int64_t>(run.last[Axis::steps]);
  const auto add = [&](std::int64_t begin, std::int64_t end, const fs::path& where,
                       const std::string& more) {
    if (begin >= end) return;
    run.past.emplace_back(end == begin + 1 ? fmt::format("step {}", end)
                                           : fmt::format("steps {} to {}", begin + 1, end),
                          where.lexically_normal().string() + more);
  };
  try {
    const RunHistory history = RunHistory::outline(folder);
    if (const std::string missing = history.missing_beginning(); !missing.empty()) {
      const RunSegment& first = history.segments().front();
      add(0, std::min(first.begin, last), first.configuration.from->run, ", which is gone");
      run.warnings.push_back(missing + ".");
    }
    std::vector<std::vector<std::int64_t>> checkpoints(history.segments().size());
    for (const RunCheckpoint& one : history.checkpoints()) {
      checkpoints[one.segment].insert(checkpoints[one.segment].begin(), one.step);
    }
    for (std::size_t i = 0; i < checkpoints.size(); ++i) {
      const RunSegment& segment = history.segments()[i];
      add(segment.begin, history.end_of(i, last), segment.run,
          checkpoints[i].empty()
              ? ""
              : fmt::format(", with checkpoints after {}", fmt::join(checkpoints[i], ", ")));
    }
  } catch (const Error& error) {
    run.warnings.push_back(fmt::format("Where its steps are cannot be read: {}.", error.what()));
  }
}

void read_hosts(const fs::path& file, ThinnedRun& run) {
  if (!is_there(file)) return;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) take_hosts_line(line, run);
}

}  // namespace

void ThinnedRun::add_mark(Mark mark) {
  const auto kind = static_cast<std::size_t>(std::ranges::find(kMarks, mark.kind) - kMarks.begin());
  mark_counts.at(kind) += mark.count;
  if (std::ranges::count(marks, mark.kind, &Mark::kind) < kMostMarks) {
    marks.push_back(std::move(mark));
  }
}

ThinnedRun read_run(const std::string& given, std::size_t columns) {
  const fs::path folder(given);
  // Shells complete the name of a folder with a slash, which is removed.
  std::string name = given;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  ThinnedRun run(name, columns);
  read_options(folder / RunFolder::kConfiguration, run);
  read_summary(folder / RunFolder::kSummary, run);
  read_hosts(folder / RunFolder::kHosts, run);
  run.step_figures = step_figures(folder / kTimelineFile);
  MetricsCheck check = metrics_check(folder, run);
  read_metrics(folder / RunFolder::kMetrics, checkpoints_of(folder), run);
  add_changes(std::move(check), run);
  read_past(folder, run);
  read_whatif(whatif_file(folder), run);
  if (is_there(folder / RunFolder::kMoved)) {
    run.warnings.push_back(fmt::format("The run continued in another folder: {}",
                                       read_file(folder / RunFolder::kMoved)));
  }
  std::ranges::stable_sort(run.marks, {}, &Mark::step);
  return run;
}

}  // namespace rubato::page
