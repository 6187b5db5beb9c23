// state_after() is a loop over the segments of the run's history, each of which has its own options
// and a Run of its own: without a folder or, if records are wanted, in a scratch folder that is
// removed afterwards (docs/adr/0073). RepeatedSteps throws at the first step that is not the
// recorded one. A segment is entered by a fork even if no step of it is needed, because a fork may
// begin parts anew and so changes the state. The first state is checked against the digest of its
// step, unless it is one with which a fork began.

#include "fork.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "loop/train/checked_parts.hpp"
#include "loop/train/record_schemas.hpp"
#include "loop/train/step/state_digest.hpp"
#include "runs/report/metrics_file.hpp"
#include "runs/tensorboard/event_folder.hpp"

namespace rubato {

namespace fs = std::filesystem;

RecordedSteps recorded_steps(const fs::path& run) {
  const fs::path file = run / RunFolder::kMetrics;
  require_metrics(file);
  RecordedSteps steps;
  GrowingLines lines(file);
  read_metrics(lines, [&](const MetricsLine& line) {
    if (line.kind() != step_schema().name) return;
    const StepRecord step = line.record(step_schema());
    // The step in which a run diverged was not taken.
    if (!step.applied && !step.skipped) return;
    steps.count = step.plan.index.value() + 1;
    steps.numbers[steps.count] = {
        .batch_size = step.plan.batch_size, .learning_rate = step.learning_rate, .loss = step.loss};
    if (step.digest) steps.digests[steps.count] = *step.digest;
  });
  return steps;
}

namespace {

// Numbers are equal if they are written alike: metrics have null for all that are not finite.
bool are_equal(double a, double b) {
  return a == b || (!std::isfinite(a) && !std::isfinite(b));
}

}  // namespace

void RepeatedSteps::on_step(Training& training, const StepRecord& step) {
  const std::int64_t count = step.plan.index.value() + 1;
  const auto differs = [&](const char* what, const auto& is, const auto& was) {
    throw StepDiffers(fmt::format(
        "{}: step {} has the {} {} when it is repeated, and had {}; it was computed by another "
        "version or other kernels, or its files or its data have changed",
        run_.string(), count, what, is, was));
  };
  if (const auto found = recorded_.numbers.find(count); found != recorded_.numbers.end()) {
    const RecordedSteps::Numbers& was = found->second;
    if (step.plan.batch_size != was.batch_size) {
      differs("batch", step.plan.batch_size, was.batch_size);
    }
    if (training.options().exact && !are_equal(step.loss, was.loss)) {
      differs("loss", step.loss, was.loss);
    }
    if (training.options().exact && !are_equal(step.learning_rate, was.learning_rate)) {
      differs("learning rate", step.learning_rate, was.learning_rate);
    }
  }
  const auto recorded = recorded_.digests.find(count);
  if (recorded == recorded_.digests.end() || !step.digest) return;
  if (*step.digest != recorded->second) {
    differs("digest", step.digest->to_text(), recorded->second.to_text());
  }
}

void RepeatedSteps::between_steps(Training& training) {
  if (training.result().steps >= last_) training.pause();
}

void require_state_of_step(const fs::path& file, const State& state, std::int64_t step,
                           const RecordedSteps& steps) {
  const auto recorded = steps.digests.find(step);
  if (recorded == steps.digests.end()) return;
  const Digest digest = digest_of_state(state);
  if (digest == recorded->second) return;
  throw StepDiffers(
      fmt::format("{}: the state has the digest {}, and step {} had {}: the file has changed; "
                  "accepted: the run without this file",
                  file.string(), digest.to_text(), step, recorded->second.to_text()));
}

namespace {

// A state from which steps are repeated, and the position of its segment in the history.
struct Beginning {
  std::size_t segment = 0;
  StateOfStep state{};
  // Empty if it was not read from a file.
  fs::path file{};
};

// The newest checkpoint of at most `last` and at least `first` steps that can be read, in the
// folders in which the history has them.
std::optional<Beginning> nearest_checkpoint(const RunHistory& history, std::int64_t first,
                                            std::int64_t last, const Report& report) {
  for (std::size_t i = history.segments().size(); i-- > 0;) {
    const RunSegment& segment = history.segments()[i];
    const std::int64_t end = history.end_of(i, last);
    for (const fs::path& file :
         CheckpointFolder(segment.run / RunFolder::kCheckpoints, 1).files()) {
      const std::int64_t step = CheckpointFolder::steps_of(file).value_or(0);
      if (step > end || step < std::max(first, segment.begin)) continue;
      try {
        return Beginning{
            .segment = i, .state = {.step = step, .state = read_state(file)}, .file = file};
      } catch (const NewerVersion&) {
        throw;
      } catch (const Error& error) {
        report(error.what());
      }
    }
  }
  return std::nullopt;
}

// Throws Error if the data are not those of the run, by any of its checkpoints: a training that
// begins anew is not compared with one.
void require_same_data(const RunHistory& history, const Run& run) {
  constexpr auto kEver = std::numeric_limits<std::int64_t>::max();
  const auto found = nearest_checkpoint(history, 0, kEver, [](const std::string& /*why*/) {});
  if (!found) return;
  StateVisitor visitor = StateVisitor::out_of(found->state.state);
  bind_data(visitor, run.trainer().objective());
}

// The state without what it knows of the records of its run.
State without_records(const State& state) {
  const auto is_of_records = [](const std::string& name) {
    return name.starts_with("observer/metrics/") || name.starts_with("observer/tensorboard/");
  };
  State rest;
  for (const auto& [name, array] : state.arrays()) {
    if (!is_of_records(name)) rest.put_array(name, array);
  }
  for (const auto& [name, text] : state.texts()) {
    if (!is_of_records(name)) rest.put_text(name, text);
  }
  return rest;
}

// Removes a folder when it is not needed any more.
class Scratch {
 public:
  explicit Scratch(fs::path path) : path_(std::move(path)) {}
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  fs::path path_;
};

}  // namespace

std::string fork_words(const RunConfiguration& run) {
  const ForkPoint& point = *run.from;
  const RecordedSteps steps = recorded_steps(point.run);
  const auto digest = steps.digests.find(point.step);
  const std::vector<std::string> changed =
      changed_in_fork(with_paths_from(point.run, configuration_of_run(point.run, run)),
                      with_paths_from(point.run, run));
  return fmt::format(
      "{} after step {}{}{}", point.run.string(), point.step,
      digest == steps.digests.end() ? "" : fmt::format(" (digest {})", digest->second.to_text()),
      changed.empty() ? std::string() : fmt::format(", with another {}", fmt::join(changed, ", ")));
}

Handover state_after(const ForkPoint& point, const RunConfiguration& around,
                     const fs::path& scratch, const ReplayParts& parts, const StateOfStep* known) {
  RunConfiguration own = configuration_of_run(point.run, around);
  own.threads = around.threads;
  own.kernels = around.kernels;
  const RunHistory history(point.run, std::move(own));
  require_not_moved(point.run);
  const RecordedSteps steps = recorded_steps(point.run);
  if (point.step > steps.count) {
    throw_error("{} has {} steps; accepted: 0 to {}", point.run.string(), steps.count, steps.count);
  }
  const bool keeps = !scratch.empty();
  const bool knows = known != nullptr && !keeps && known->step <= point.step;
  auto found = nearest_checkpoint(history, knows ? known->step + 1 : 0, point.step, parts.report);
  if (!found && knows) {
    found = {.segment = history.of_step(known->step + 1), .state = *known};
  }
  if (!found) history.require_beginning();
  if (found && !found->file.empty() && parts.checks_states) {
    const RunSegment& segment = history.segments()[found->segment];
    // A fork begins with a state that may not be that of its step: an optimizer may begin anew.
    const bool begins_fork =
        !segment.configuration.from.empty() && found->state.step == segment.begin;
    if (!begins_fork) {
      require_state_of_step(found->file, found->state.state, found->state.step, steps);
    }
  }

  std::size_t at = found ? found->segment : 0;
  std::int64_t taken = found ? found->state.step : 0;
  std::optional<Handover> handover;
  if (found) {
    handover = keeps ? Handover{.state = std::move(found->state.state),
                                .records = records_of(history.segments()[at].run)}
                     : Handover{.state = without_records(found->state.state), .records = {}};
  }
  bool is_entered = !found;
  while (true) {
    const std::int64_t end = history.end_of(at, point.step);
    // A fork changes the state, even if it takes no step.
    if (is_entered || taken < end) {
      RunConfiguration run = history.segments()[at].configuration;
      run.checkpoint_every = "never";
      run.timeline = "";
      const Scratch removed(scratch);
      RunLocation location = handover ? RunLocation::fork(scratch, *std::move(handover))
                             : keeps  ? RunLocation::create(scratch)
                                      : RunLocation();
      if (parts.on_begin && taken < end) {
        parts.on_begin(history.segments()[at].run, taken + 1, end);
      }
      Run replay(run, parts.load(run), std::move(location));
      if (taken == 0 && !found) require_same_data(history, replay);
      replay.trainer().add_observer<StepListener>(parts);
      replay.trainer().add_observer<RepeatedSteps>(point.run, steps, end);
      if (taken < end) static_cast<void>(replay.execute());
      taken = replay.trainer().result().steps;
      if (taken != end) {
        throw_error("{} ends after {} steps when it is repeated, and had {}", point.run.string(),
                    taken, steps.count);
      }
      handover =
          keeps ? hand_over(replay) : Handover{.state = replay.trainer().state(), .records = {}};
    }
    if (at + 1 == history.segments().size() || history.segments()[at + 1].begin > point.step) break;
    ++at;
    is_entered = true;
  }
  return *std::move(handover);
}

namespace {

// Removes the folder of this fork if its process was killed before the first checkpoint. Any other
// folder stays, and is refused as one that exists.
void remove_unmade_fork(const fs::path& folder, const RunConfiguration& run) {
  constexpr std::chrono::seconds kEnding{10};
  const bool has_results = std::ranges::any_of(
      RunFolder::results(), [&](const std::string& name) { return is_there(folder / name); });
  if (has_results || !is_there(folder / RunFolder::kConfiguration)) return;
  try {
    const RunConfiguration there = configuration_of_run(folder, run);
    if (with_paths_from(folder, there).from != with_paths_from(folder, run).from) return;
  } catch (const Error&) {
    // It is no configuration of a run.
    return;
  }
  const RunFolder locked = RunFolder::existing(folder, kEnding);
  fs::remove_all(folder);
}

}  // namespace

RunLocation location_to_train(const RunRequest& request, const ReplayParts& parts) {
  if (request.run.from.empty() || request.resume) return location_of(request, parts.report);
  require_one_folder(request);
  if (request.continues && is_there(*request.out)) {
    if (!CheckpointFolder(*request.out / RunFolder::kCheckpoints, 1).files().empty()) {
      return location_of(request, parts.report);
    }
    remove_unmade_fork(*request.out, request.run);
  }
  if (request.out) check_run_folder(*request.out);
  return location_of_fork(request.out.value_or(""), request.run, parts);
}

RunLocation location_of_fork(fs::path folder, const RunConfiguration& run,
                             const ReplayParts& parts) {
  const ForkPoint& point = *run.from;
  require_forkable(with_paths_from(point.run, configuration_of_run(point.run, run)),
                   with_paths_from(point.run, run));
  fs::path scratch = folder;
  if (!folder.empty()) scratch = unused_path(folder.string() + ".replay");
  Handover state = state_after(point, run, scratch, parts);
  return RunLocation::fork(std::move(folder), std::move(state), fork_words(run));
}

}  // namespace rubato
