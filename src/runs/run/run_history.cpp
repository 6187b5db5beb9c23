#include "run_history.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "runs/config/values/fork_point.hpp"

namespace rubato {

namespace fs = std::filesystem;

RunConfiguration configuration_of_run(const fs::path& run, const RunConfiguration& around) {
  if (!is_there(run / RunFolder::kConfiguration)) {
    throw_error("no run in '{}'; accepted: the folder of one", run.string());
  }
  return read_configuration(run / RunFolder::kConfiguration, {}, around);
}

RunHistory::RunHistory(const fs::path& run, RunConfiguration own) {
  segments_.push_back({.run = run, .configuration = std::move(own)});
  const auto is_known = [this](const fs::path& folder) {
    // A fork that was moved to the place of its origin names itself.
    return std::ranges::any_of(segments_, [&](const RunSegment& segment) {
      return fs::weakly_canonical(segment.run) == fs::weakly_canonical(folder);
    });
  };
  while (!segments_.front().configuration.from.empty()) {
    const ForkPoint from = *segments_.front().configuration.from;
    segments_.front().begin = from.step;
    if (!is_there(from.run / RunFolder::kConfiguration) || is_known(from.run)) break;
    const RunConfiguration& last = segments_.back().configuration;
    RunConfiguration configuration = configuration_of_run(from.run, last);
    configuration.threads = last.threads;
    configuration.kernels = last.kernels;
    segments_.insert(segments_.begin(),
                     {.run = from.run, .configuration = std::move(configuration)});
  }
  // A fork of a fork may begin before that one does.
  for (std::size_t i = segments_.size() - 1; i-- > 0;) {
    if (segments_[i].begin <= segments_[i + 1].begin) continue;
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::size_t RunHistory::of_step(std::int64_t step) const {
  const auto after = std::ranges::find_if(
      segments_, [&](const RunSegment& segment) { return segment.begin >= step; });
  if (after != segments_.begin()) return static_cast<std::size_t>(after - segments_.begin()) - 1;
  require_beginning();
  return 0;
}

std::int64_t RunHistory::end_of(std::size_t segment, std::int64_t last) const {
  return segment + 1 < segments_.size() ? std::min(segments_[segment + 1].begin, last) : last;
}

RunHistory RunHistory::with(const std::function<void(RunConfiguration&)>& change) const {
  RunHistory changed = *this;
  for (RunSegment& segment : changed.segments_) change(segment.configuration);
  return changed;
}

void RunHistory::require_beginning() const {
  const RunSegment& first = segments_.front();
  if (first.configuration.from.empty()) return;
  const auto states = CheckpointFolder(first.run / RunFolder::kCheckpoints, 1).files();
  const std::string origin = first.configuration.from->run.string();
  throw_error("{}, the origin of {}, is gone or is another run; accepted: {} in its place{}",
              origin, first.run.string(), origin,
              states.empty()
                  ? ""
                  : fmt::format("; steps from {} on can be forked and repeated without it",
                                CheckpointFolder::steps_of(states.back()).value_or(0)));
}

}  // namespace rubato
