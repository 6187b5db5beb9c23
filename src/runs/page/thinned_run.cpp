#include "thinned_run.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/config/toml.hpp"
#include "runs/report/timeline.hpp"
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
  read_metrics(folder / RunFolder::kMetrics, checkpoints_of(folder), run);
  read_whatif(whatif_file(folder), run);
  if (is_there(folder / RunFolder::kMoved)) {
    run.warnings.push_back(fmt::format("The run continued in another folder: {}",
                                       read_file(folder / RunFolder::kMoved)));
  }
  std::ranges::stable_sort(run.marks, {}, &Mark::step);
  return run;
}

}  // namespace rubato::page
