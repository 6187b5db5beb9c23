#include "fork.hpp"

#include <algorithm>
#include <chrono>
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
#include "loop/train/record_schemas.hpp"
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
    if (step.digest) steps.digests[steps.count] = *step.digest;
  });
  return steps;
}

void RepeatedSteps::on_step(Training& /*training*/, const StepRecord& step) {
  const std::int64_t count = step.plan.index.value() + 1;
  const auto recorded = recorded_.digests.find(count);
  if (recorded == recorded_.digests.end() || !step.digest) return;
  if (*step.digest == recorded->second) return;
  throw DigestDiffers(fmt::format(
      "{}: step {} has the digest {} when it is repeated, and had {}; it was computed by another "
      "version or other kernels, or its files have changed",
      run_.string(), count, step.digest->to_text(), recorded->second.to_text()));
}

void RepeatedSteps::between_steps(Training& training) {
  if (training.result().steps >= last_) training.pause();
}

namespace {

// The newest checkpoint of at most so many steps that can be read.
std::optional<StateOfStep> nearest_checkpoint(const ForkPoint& point, const Tell& tell) {
  const CheckpointFolder checkpoints(point.run / RunFolder::kCheckpoints, 1);
  for (const fs::path& file : checkpoints.files()) {
    const std::int64_t step = CheckpointFolder::steps_of(file).value_or(0);
    if (step > point.step) continue;
    try {
      return StateOfStep{.step = step, .state = read_state(file)};
    } catch (const NewerVersion&) {
      throw;
    } catch (const Error& error) {
      tell(error.what());
    }
  }
  return std::nullopt;
}

std::map<std::string, std::string> records_of(const fs::path& run) {
  std::map<std::string, std::string> records;
  records.emplace(RunFolder::kMetrics, read_file(run / RunFolder::kMetrics));
  for (const fs::path& file : event_files(run)) {
    records.emplace(file.filename().string(), read_file(file));
  }
  return records;
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

RunConfiguration configuration_of_run(const fs::path& run, const RunConfiguration& around) {
  if (!is_there(run / RunFolder::kConfiguration)) {
    throw_error("no run in '{}'; accepted: the folder of one", run.string());
  }
  return read_configuration(run / RunFolder::kConfiguration, {}, around);
}

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
  RunConfiguration run = configuration_of_run(point.run, around);
  require_not_moved(point.run);
  const RecordedSteps steps = recorded_steps(point.run);
  if (point.step > steps.count) {
    throw_error("{} has {} steps; accepted: 0 to {}", point.run.string(), steps.count, steps.count);
  }
  auto found = nearest_checkpoint(point, parts.tell);
  // The steps before a fork had other options.
  const std::int64_t first = run.from.empty() ? 0 : run.from->step;
  if (known != nullptr && known->step >= first && known->step <= point.step &&
      (!found || found->step < known->step)) {
    found = *known;
  }
  // A fork has the steps before it from its own run.
  if (!found && !run.from.empty() && point.step <= first) {
    return state_after({.run = run.from->run, .step = point.step}, around, scratch, parts);
  }
  const bool keeps = !scratch.empty();
  if (found && found->step == point.step) {
    if (!keeps) return {.state = without_records(found->state), .records = {}};
    return {.state = std::move(found->state), .records = records_of(point.run)};
  }

  run.threads = around.threads;
  run.kernels = around.kernels;
  run.checkpoint_every = "never";
  run.timeline = "";
  const Scratch removed(scratch);
  const std::int64_t begun = found ? found->step : first;
  const auto begin = [&] {
    if (!found && !run.from.empty()) return location_of_fork(scratch, run, parts);
    if (!found) return keeps ? RunLocation::create(scratch) : RunLocation();
    if (!keeps)
      return RunLocation::fork({}, {.state = without_records(found->state), .records = {}});
    return RunLocation::fork(scratch,
                             {.state = std::move(found->state), .records = records_of(point.run)});
  };
  RunLocation location = begin();
  if (parts.on_begin && point.step > begun) parts.on_begin(point.run, begun + 1, point.step);
  Run replay(run, parts.load(run), std::move(location));
  replay.trainer().add_observer<StepListener>(parts);
  replay.trainer().add_observer<RepeatedSteps>(point.run, steps, point.step);
  if (point.step > begun) static_cast<void>(replay.execute());
  if (replay.trainer().result().steps != point.step) {
    throw_error("{} ends after {} steps when it is repeated, and had {}", point.run.string(),
                replay.trainer().result().steps, steps.count);
  }
  if (keeps) return hand_over(replay);
  return {.state = replay.trainer().state(), .records = {}};
}

namespace {

// Removes the folder of this fork if its process was killed before the first checkpoint. Any other
// folder stays, and is refused as one that exists.
void remove_unmade_fork(const fs::path& folder, const RunConfiguration& run) {
  constexpr std::chrono::seconds kEnding{10};
  const bool has_results = std::ranges::any_of(
      RunFolder::kResults, [&](std::string_view name) { return is_there(folder / name); });
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
  if (request.run.from.empty() || request.resume) return location_of(request, parts.tell);
  require_one_folder(request);
  if (request.continues && is_there(*request.out)) {
    if (!CheckpointFolder(*request.out / RunFolder::kCheckpoints, 1).files().empty()) {
      return location_of(request, parts.tell);
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
