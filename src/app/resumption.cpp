#include "app/resumption.hpp"

#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <rubato/config/configuration_file.hpp>
#include <rubato/config/resume.hpp>
#include <rubato/config/trace_source.hpp>
#include <rubato/core/file.hpp>
#include <rubato/state/state_file.hpp>

#include "app/output.hpp"
#include "app/run_record.hpp"

namespace rubato::app {

namespace {

namespace fs = std::filesystem;

using Found = CheckpointFolder::Found;

std::optional<Found> newest_of(const RunFolder& folder, const CheckpointFolder& checkpoints) {
  bool rejected = false;
  auto found = checkpoints.newest([&](const std::string& why) {
    print_error(fmt::format("rubato train: {}\n", why));
    rejected = true;
  });
  if (!found && rejected) {
    throw Error(fmt::format("{}: no checkpoint can be read; accepted: a run with a good one",
                            folder.file("checkpoints").string()));
  }
  return found;
}

Found named_one(const fs::path& file, const CheckpointFolder& checkpoints) {
  std::error_code ignored;
  if (!CheckpointFolder::steps_of(file) || !fs::is_regular_file(file, ignored)) {
    std::vector<std::string> names;
    for (const fs::path& other : checkpoints.files()) names.push_back(other.filename().string());
    throw Error(
        fmt::format("--resume: no such checkpoint as {}; accepted: {}", file.string(),
                    names.empty() ? "a run with one" : fmt::to_string(fmt::join(names, ", "))));
  }
  return {.file = file, .state = read_state(file)};
}

// That a run begins anew must not throw away what it has come to.
void require_nothing_to_lose(const RunFolder& folder) {
  std::error_code ignored;
  for (const char* name : {"summary.json", "weights.pt"}) {
    if (!fs::exists(folder.file(name), ignored)) continue;
    throw Error(
        fmt::format("{}: the run has ended and left {}, but no checkpoint to go on from; accepted: "
                    "a new run, such as rubato train --config {}",
                    folder.path().string(), name, folder.file("config.toml").string()));
  }
}

// A folder that does not exist yet.
fs::path unused(const fs::path& wanted) {
  std::error_code ignored;
  fs::path folder = wanted;
  for (int i = 2; fs::exists(fs::symlink_status(folder, ignored)); ++i) {
    folder = fmt::format("{}-{}", wanted.string(), i);
  }
  return folder;
}

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) {
    throw OutputError(fmt::format("{}: cannot write: {}", to.string(), error.message()));
  }
}

}  // namespace

std::string config_text(const RunConfiguration& run, const RunFolder& folder) {
  return to_toml(with_paths_from(folder.path(), run));
}

std::string write_origin(const RunFolder& folder, RunConfiguration run, const Trace& trace) {
  if (trace_file(run.trace)) {
    folder.write("trace.csv", trace.to_csv());
    run.trace = folder.file("trace.csv").string();
  }
  std::string config = config_text(run, folder);
  folder.write("config.toml", config);
  return config;
}

std::optional<Found> checkpoint_of(const RunFolder& folder, const CheckpointFolder& checkpoints,
                                   const TrainArguments& arguments) {
  std::optional<Found> found = arguments.checkpoint ? named_one(*arguments.checkpoint, checkpoints)
                                                    : newest_of(folder, checkpoints);
  const RunConfiguration now = with_paths_from(folder.path(), arguments.run);
  if (found) {
    require_resumable(configuration_in(found->state), now, ResumeFrom::checkpoint);
  } else {
    require_nothing_to_lose(folder);
    require_resumable(with_paths_from(folder.path(), configuration_of(folder.path())), now,
                      ResumeFrom::configuration);
  }
  return found;
}

KeepNewer::KeepNewer(const RunFolder& run, const CheckpointFolder& checkpoints,
                     const fs::path& from, TrainArguments arguments)
    : run_(run.path()),
      steps_(CheckpointFolder::steps_of(from).value_or(0)),
      arguments_(std::move(arguments)) {
  for (fs::path& file : checkpoints.files()) {
    if (CheckpointFolder::steps_of(file) > steps_) newer_.push_back(std::move(file));
  }
}

// Whether the run had come to its end, further than where it goes on.
bool KeepNewer::is_finished_later() const {
  std::error_code ignored;
  if (!fs::exists(run_ / "summary.json", ignored)) return false;
  const auto summary =
      nlohmann::json::parse(read_file(run_ / "summary.json"), nullptr, /*allow_exceptions=*/false);
  const auto steps = summary.is_object() ? summary.find("steps") : summary.end();
  return steps == summary.end() || !steps->is_number_integer() || *steps > steps_;
}

// Whenever it is interrupted, the run has all of its lines and its newest remaining checkpoint.
void KeepNewer::load(const Training& training, const State& state) {
  static_cast<void>(training), static_cast<void>(state);
  if (!is_finished_later() && !(arguments_.checkpoint && !newer_.empty())) return;
  const RunFolder aside(unused(run_ / fmt::format("newer-than-step-{}", steps_)));
  RunConfiguration before = configuration_of(run_);
  before.data = arguments_.run.data;
  // The trace that it was trained with: from here on it may be another.
  const Trace trace = load_trace(before.trace, before.on_trace_end);
  write_origin(aside, std::move(before), trace);
  aside.write("metrics.jsonl", read_file(run_ / "metrics.jsonl"));
  std::error_code ignored;
  for (const char* name : {"best.pt", "weights.pt", "summary.json"}) {
    if (fs::exists(run_ / name, ignored)) move(run_ / name, aside.file(name));
  }
  if (!newer_.empty()) {
    fs::create_directory(aside.file("checkpoints"), ignored);
    for (const fs::path& file : newer_) move(file, aside.file("checkpoints") / file.filename());
    flush_to_disk(aside.file("checkpoints"));
    flush_to_disk(newer_.front().parent_path());
  }
  flush_to_disk(aside.path());
  flush_to_disk(run_);
  kept_in_ = aside.path();
}

}  // namespace rubato::app
