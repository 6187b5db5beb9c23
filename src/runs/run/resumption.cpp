// This file has what a resume needs besides the trainer's state: the facts that a checkpoint and a
// folder keep about their run, the way in which newer results are set aside, and the form in which
// hosts hand a run over. Setting aside is a transaction without a log. Copies go into a folder with
// the suffix .part, which may be removed; renaming it to .moving is the commit, after which
// finish_setting_aside() can repeat every move until the folder has its name.

#include "resumption.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/state.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "runs/config/plugin.hpp"
#include "runs/config/run_option.hpp"
#include "runs/report/record_cells.hpp"
#include "runs/run/workload/run_data.hpp"
#include "runs/tensorboard/event_folder.hpp"

namespace rubato {

namespace {

constexpr std::string_view kConfig = "config";
constexpr std::string_view kSeconds = "wall_seconds";

}  // namespace

RunRecord::RunRecord(std::string config, std::span<const WorkloadFile> files)
    : config_(std::move(config)) {
  for (const WorkloadFile& file : files) {
    files_.emplace_back(file.option, Sha256::hex_of(file.bytes));
  }
}

void RunRecord::visit_state(StateVisitor& state, const Training& /*training*/) {
  static_cast<void>(state.bound_if_there(kConfig, config_));
  for (const auto& [option, hex] : files_) {
    const std::string before = state.bound_if_there(fmt::format("sha256.{}", option), hex);
    if (before == hex) continue;
    throw_error(
        "--{}: the file is not the one that the run was trained with (SHA-256 {}, was {}); "
        "accepted: given-{}.* of the run",
        option, hex, before, option);
  }
  double seconds = wall_seconds();
  state.value(kSeconds, seconds);
  if (state.loading()) seconds_before_ = seconds;
}

RunConfiguration configuration_in(const State& checkpoint, const Extensions& extensions) {
  return parse_configuration(observer_state(checkpoint, "run").text(kConfig),
                             "the checkpoint's configuration", {}, extensions);
}

namespace {

namespace fs = std::filesystem;

void move(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return;
  throw OutputError(
      fmt::format("{}: cannot write: {}", to.string(), std::generic_category().message(errno)));
}

// Copies the plug-ins into the folder, and makes the configuration name the copies.
void write_plugins(const RunFolder& folder, RunConfiguration& run) {
  std::vector<Plugin> plugins = *run.plugin;
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    const std::string name = i == 0 ? "given-plugin.so" : fmt::format("given-plugin-{}.so", i + 1);
    folder.write(name, content_of(plugins[i]));
    plugins[i].file = folder.file(name);
  }
  run.plugin = to_text(plugins);
}

}  // namespace

std::string config_text(const RunConfiguration& run, const RunFolder& folder) {
  return to_toml(with_paths_from(folder.path(), run));
}

namespace {

constexpr std::string_view kNote = "# A fork: ";

// The line with the note of a configuration file; empty if there is none.
std::string note_line(const fs::path& file) {
  if (!is_there(file)) return {};
  const std::string text = read_file(file);
  const std::size_t begin = text.find(kNote);
  return begin == std::string::npos ? std::string()
                                    : text.substr(begin, text.find('\n', begin) + 1 - begin);
}

}  // namespace

std::string write_origin(const RunFolder& folder, RunConfiguration run, const RunSteps& steps,
                         std::span<const WorkloadFile> files, std::string_view note) {
  if (const Zones* const zones = std::get_if<Zones>(&steps)) {
    std::vector<ZoneTrace> traces;
    for (const auto& [name, availability] : zones->all()) {
      const std::string file =
          zones->several() ? fmt::format("availability-{}.csv", name) : "availability.csv";
      std::ostringstream text;
      availability.write_csv(text);
      folder.write(file, text.str());
      traces.push_back({.name = name, .trace = folder.file(file).string()});
    }
    run.trace = zones->several() ? text_of_zones(traces) : traces.front().trace.text();
  } else if (!run.trace->is_built_in()) {
    folder.write(RunFolder::kTrace, std::get<Trace>(steps).to_csv());
    run.trace = folder.file(RunFolder::kTrace).string();
    // The file holds the steps that the availability yielded.
    run.availability = {};
  }
  for (const WorkloadFile& file : files) {
    const std::string name = fmt::format("given-{}{}", file.option, file.extension);
    folder.write(name, file.bytes);
    const RunOption& option = run_option(file.option);
    option.set(run, option.map_path(*option.text(run),
                                    [&](const fs::path&) { return folder.file(name); }));
  }
  write_plugins(folder, run);
  std::string config = (note.empty() ? note_line(folder.file(RunFolder::kConfiguration))
                                     : fmt::format("{}{}\n", kNote, note)) +
                       config_text(run, folder);
  folder.write(RunFolder::kConfiguration, config);
  return config;
}

namespace {

// An unfinished folder has the first suffix before the commit and the second after it.
constexpr std::string_view kCopying = ".part";
constexpr std::string_view kMoving = ".moving";
constexpr std::string_view kNewerThan = "newer-than-step-";

// Whether the run had ended after more than `steps` steps.
bool is_finished_later(const fs::path& run, std::int64_t steps) {
  const fs::path file = run / RunFolder::kSummary;
  if (!is_there(file)) return false;
  try {
    // A summary that does not say its steps may be later.
    const auto ended_after = number_in(record_info("summary"), summary_cells(file), "steps");
    return !ended_after || *ended_after > static_cast<double>(steps);
  } catch (const Error&) {
    return true;
  }
}

std::vector<fs::path> newer_checkpoints(const fs::path& run, std::int64_t steps) {
  std::vector<fs::path> newer = CheckpointFolder(run / RunFolder::kCheckpoints, 1).files();
  std::erase_if(newer,
                [&](const fs::path& file) { return CheckpointFolder::steps_of(file) <= steps; });
  return newer;
}

// Copies the files that the run continues to need.
void copy_records(const fs::path& run, const RunFolder& aside, const Continuation& continuation) {
  RunConfiguration before =
      read_configuration(run / RunFolder::kConfiguration, {}, continuation.now);
  before.data = continuation.now.data;
  // The run was trained with this trace, and may continue with another.
  const RunSteps steps = load_run_steps(before);
  write_origin(aside, std::move(before), steps, continuation.files);
  std::vector<fs::path> records{run / RunFolder::kMetrics};
  if (is_there(run / kDataRecordFile)) records.push_back(run / kDataRecordFile);
  for (fs::path& file : event_files(run)) records.push_back(std::move(file));
  for (const fs::path& file : records) aside.write(file.filename().string(), read_file(file));
  flush_to_disk(aside.path());
}

// Moves the results and the newer checkpoints of a run into `moving`, and gives that folder its
// name, which is returned. Does what is left of it when called again.
fs::path move_results(const fs::path& run, const fs::path& moving, std::int64_t steps) {
  const auto move_there = [&](std::string_view name) {
    if (is_there(run / name)) move(run / name, moving / name);
  };
  std::ranges::for_each(RunFolder::kBest, move_there);
  // The summary, which says that the run has ended, is moved last.
  const std::vector<std::string> results = RunFolder::results();
  std::for_each(results.rbegin(), results.rend(), move_there);
  const fs::path to = moving / RunFolder::kCheckpoints;
  for (const fs::path& file : newer_checkpoints(run, steps)) {
    std::error_code ignored;
    fs::create_directory(to, ignored);
    move(file, to / file.filename());
  }
  if (is_there(to)) {
    flush_to_disk(to);
    flush_to_disk(run / RunFolder::kCheckpoints);
  }
  flush_to_disk(moving);
  fs::path named = moving;
  named.replace_extension();
  move(moving, named);
  flush_to_disk(run);
  return named;
}

}  // namespace

std::optional<fs::path> set_aside_newer(const RunFolder& run, const Continuation& continuation) {
  const std::int64_t steps = CheckpointFolder::steps_of(continuation.from).value_or(0);
  const bool leaves_newer = continuation.named && !newer_checkpoints(run.path(), steps).empty();
  if (!leaves_newer && !is_finished_later(run.path(), steps)) return std::nullopt;
  const fs::path named = unused_path(run.file(fmt::format("{}{}", kNewerThan, steps)));
  const fs::path copying = named.string().append(kCopying);
  const fs::path moving = named.string().append(kMoving);
  copy_records(run.path(), RunFolder(copying), continuation);
  move(copying, moving);
  flush_to_disk(run.path());
  return move_results(run.path(), moving, steps);
}

void finish_setting_aside(const RunFolder& run) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(run.path())) {
    if (entry.path().filename().string().starts_with(kNewerThan)) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  for (const fs::path& folder : found) {
    if (folder.extension() == kCopying) fs::remove_all(folder);
    if (folder.extension() != kMoving) continue;
    std::int64_t steps = 0;
    const std::string name = folder.stem().string();
    const char* const digits = name.data() + kNewerThan.size();
    if (std::from_chars(digits, name.data() + name.size(), steps).ec != std::errc()) continue;
    move_results(run.path(), folder, steps);
  }
}

void mark_moved(const fs::path& folder, const fs::path& to, std::int64_t steps) noexcept {
  try {
    write_file(folder / RunFolder::kMoved, fmt::format("after {} steps the run continued in {}\n",
                                                       steps, absolute_path(to).string()));
  } catch (const std::exception&) {
    // The folder may be another host's, or may have gone.
  }
}

void unmark_moved(const fs::path& folder) noexcept {
  std::error_code ignored;
  fs::remove(folder / RunFolder::kMoved, ignored);
}

void require_not_moved(const fs::path& folder) {
  const fs::path mark = folder / RunFolder::kMoved;
  if (!is_there(mark)) return;
  std::string word = read_file(mark);
  while (word.ends_with('\n')) word.pop_back();
  throw_error("{}: {}; accepted: that folder, or this one without {}", folder.string(), word,
              RunFolder::kMoved);
}

namespace {

constexpr std::string_view kStatePart = "state";
constexpr std::string_view kRecordsPart = "records";

// Only these files are written at the request of another host.
bool is_record(const std::string& name) {
  return name == RunFolder::kMetrics || is_event_file_name(name);
}

}  // namespace

std::map<std::string, std::string> records_of(const fs::path& run) {
  std::map<std::string, std::string> records;
  records.emplace(RunFolder::kMetrics, read_file(run / RunFolder::kMetrics));
  for (const fs::path& file : event_files(run)) {
    records.emplace(file.filename().string(), read_file(file));
  }
  return records;
}

Handover hand_over(Run& run) {
  run.sync_records();
  return {.state = run.trainer().state(), .records = records_of(run.location().path())};
}

std::string handover_bytes(Handover handover) {
  State records;
  for (auto& [name, bytes] : handover.records) {
    const auto size = static_cast<std::int64_t>(bytes.size());
    records.put_array(name, {.type = ElementType::u8, .shape = {size}, .bytes = std::move(bytes)});
  }
  State all;
  all.put(kStatePart, std::move(handover.state));
  all.put(kRecordsPart, std::move(records));
  return state_bytes(all);
}

Handover parse_handover(std::string_view bytes) {
  const State all = parse_state(bytes, "the state of the other hosts");
  Handover handover;
  handover.state = all.part(kStatePart);
  const State records = all.part(kRecordsPart);
  for (const auto& [name, record] : records.arrays()) {
    if (!is_record(name)) {
      throw_error("another host sends a file '{}'; accepted: records of a run", name);
    }
    handover.records.emplace(name, record.bytes);
  }
  return handover;
}

}  // namespace rubato
