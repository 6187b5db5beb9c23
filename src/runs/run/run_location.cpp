// A location says which folder is locked, from which state the run continues, and that it may
// continue with these options (require_resumable()). resume(), continue_in() and follow() look for
// the state in the folder (find()): the checkpoint that was named, else the newest that can be
// read, else the beginning; fork(), continue_from() and take_over() are given it. Whoever locks a
// folder completes an interrupted setting aside before looking for checkpoints, because that moves
// some.

#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/state.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "resumption.hpp"
#include "runs/config/configuration_file.hpp"
#include "runs/tensorboard/event_folder.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

using Found = CheckpointFolder::Found;

std::optional<Found> newest_of(const fs::path& folder, const CheckpointFolder& checkpoints,
                               std::vector<std::string>& rejected) {
  auto found = checkpoints.newest([&](const std::string& why) { rejected.push_back(why); });
  if (!found && !rejected.empty()) {
    throw_error("{}: no checkpoint can be read; accepted: a run with a good one",
                (folder / RunFolder::kCheckpoints).string());
  }
  return found;
}

Found named_one(const fs::path& file, const CheckpointFolder& checkpoints) {
  std::error_code ignored;
  if (!CheckpointFolder::steps_of(file) || !fs::is_regular_file(file, ignored)) {
    const auto names = vector_of(checkpoints.files(),
                                 [](const fs::path& other) { return other.filename().string(); });
    throw_error("no such checkpoint as {}; accepted: {}", file.string(),
                names.empty() ? "a run with one" : fmt::to_string(fmt::join(names, ", ")));
  }
  return {.file = file, .state = read_state(file)};
}

// Refuses to begin a run anew in a folder that contains its results.
void require_nothing_to_lose(const fs::path& folder) {
  for (const std::string& name : RunFolder::results()) {
    if (!is_there(folder / name)) continue;
    throw_error(
        "{}: the run has ended and left {}, but no checkpoint to continue from; accepted: a new "
        "run, such as rubato train --config {}",
        folder.string(), name, shell_quoted((folder / RunFolder::kConfiguration).string()));
  }
}

}  // namespace

RunLocation RunLocation::create(fs::path folder) {
  RunLocation location;
  location.path_ = std::move(folder);
  return location;
}

RunLocation RunLocation::resume(fs::path folder, const RunConfiguration& configuration,
                                const std::optional<fs::path>& checkpoint) {
  RunLocation location = create(std::move(folder));
  location.folder_.emplace(RunFolder::existing(location.path_));
  finish_setting_aside(*location.folder_);
  location.find(location.path_, configuration, checkpoint);
  return location;
}

RunLocation RunLocation::continue_in(fs::path folder, const RunConfiguration& configuration,
                                     const std::function<void()>& on_wait) {
  constexpr std::chrono::seconds kEnding{10};
  RunLocation location = create(std::move(folder));
  location.folder_.emplace(RunFolder::existing_or_new(location.path_, kEnding, on_wait));
  finish_setting_aside(*location.folder_);
  location.find(location.path_, configuration, {}, /*again=*/true);
  return location;
}

RunLocation RunLocation::follow(const fs::path& folder, const RunConfiguration& configuration,
                                const std::optional<fs::path>& checkpoint, bool again) {
  RunLocation location;
  location.find(folder, configuration, checkpoint, again);
  return location;
}

RunLocation RunLocation::continue_from(State state, const RunConfiguration& configuration) {
  require_resumable(configuration_in(state, configuration.extensions), configuration,
                    ResumeFrom::checkpoint);
  RunLocation location;
  location.from_ = Found{.file = {}, .state = std::move(state)};
  return location;
}

RunLocation RunLocation::take_over(fs::path folder, const RunConfiguration& configuration,
                                   const Handover& handover, std::chrono::milliseconds patience) {
  RunLocation location = create(std::move(folder));
  const fs::path& path = location.path_;
  std::error_code ignored;
  if (is_there(path)) {
    const RunConfiguration before =
        read_configuration(path / RunFolder::kConfiguration, {}, configuration);
    // The trace is a copy; it and the data were compared when this host joined.
    require_resumable(with_paths_from(path, before), with_paths_from(path, configuration),
                      ResumeFrom::checkpoint);
    location.folder_.emplace(RunFolder::existing(path, patience));
    finish_setting_aside(*location.folder_);
  } else {
    location.folder_.emplace(path);
  }
  unmark_moved(path);
  for (const fs::path& file : event_files(path)) fs::remove(file, ignored);
  for (const auto& [name, bytes] : handover.records) location.folder_->write(name, bytes);
  location.from_ = Found{.file = {}, .state = handover.state};
  return location;
}

RunLocation RunLocation::fork(fs::path folder, Handover of, std::string note) {
  RunLocation location = create(std::move(folder));
  location.from_ = Found{.file = {}, .state = std::move(of.state)};
  location.forks_ = true;
  location.records_ = std::move(of.records);
  location.note_ = std::move(note);
  return location;
}

RunLocation RunLocation::fork_in(fs::path folder, Handover of, std::string note) {
  RunLocation location = fork(std::move(folder), std::move(of), std::move(note));
  location.folder_.emplace(RunFolder::existing(location.path_));
  return location;
}

void RunLocation::find(const fs::path& folder, const RunConfiguration& configuration,
                       const std::optional<fs::path>& checkpoint, bool again) {
  require_not_moved(folder);
  named_ = checkpoint.has_value();
  const CheckpointFolder checkpoints(folder / RunFolder::kCheckpoints, configuration.keep);
  from_ =
      checkpoint ? named_one(*checkpoint, checkpoints) : newest_of(folder, checkpoints, rejected_);
  const RunConfiguration now = with_paths_from(folder, configuration);
  if (from_) {
    require_resumable(configuration_in(from_->state, now.extensions), now, ResumeFrom::checkpoint);
  } else {
    if (!configuration.from.empty()) {
      throw_error(
          "{}: the fork has no checkpoint to continue from; accepted: a new one, such as rubato "
          "train --config {}",
          folder.string(), shell_quoted((folder / RunFolder::kConfiguration).string()));
    }
    require_nothing_to_lose(folder);
    // The process was killed before it wrote the configuration.
    if (again && !is_there(folder / RunFolder::kConfiguration)) return;
    const RunConfiguration before =
        read_configuration(folder / RunFolder::kConfiguration, {}, configuration);
    require_resumable(with_paths_from(folder, before), now,
                      again ? ResumeFrom::checkpoint : ResumeFrom::configuration);
  }
}

}  // namespace rubato
