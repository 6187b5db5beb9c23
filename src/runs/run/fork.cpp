// state_after() is a loop over the segments of the run's history, each of which has its own options
// and a Run of its own: without a folder or, if records are wanted, in a scratch folder that is
// removed afterwards (docs/adr/0073). Whatever can be compared is, before it is relied on. A
// segment is entered by a fork even if no step of it is needed, because a fork may begin parts anew
// and so changes the state.

#include "fork.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "loop/train/checked_parts.hpp"
#include "runs/config/values/fork_point.hpp"

namespace rubato {

namespace fs = std::filesystem;

namespace {

// Compares each step that a training repeats with the records of its run, and pauses it after the
// last of them.
class RepeatedSteps final : public Observer {
 public:
  RepeatedSteps(const RunHistory& history, const ReplayParts& parts, std::int64_t last,
                ComputedBy here)
      : history_(history), parts_(parts), last_(last), here_(std::move(here)) {}

  void on_step(Training& training, const StepRecord& step) override {
    const std::string differs = history_.difference_of(step, training.options().exact, here_);
    if (!differs.empty()) throw StepDiffers(differs);
  }
  void between_steps(Training& training) override {
    const std::int64_t steps = training.result().steps;
    if (parts_.on_step) parts_.on_step(steps);
    if (steps >= last_) training.pause();
  }

 private:
  const RunHistory& history_;
  const ReplayParts& parts_;
  std::int64_t last_;
  ComputedBy here_;
};

}  // namespace

void repeat_steps(Run& run, const RunHistory& history, const RunSegment& segment, std::int64_t end,
                  const ReplayParts& parts) {
  const std::int64_t taken = run.trainer().result().steps;
  const ComputedBy here = computed_by(run.workload().engine(), run.configuration().kernels);
  if (taken < end) {
    if (parts.on_begin) parts.on_begin(segment.run, taken + 1, end);
    run.trainer().add_observer<RepeatedSteps>(history, parts, end, here);
    static_cast<void>(run.execute());
  }
  const std::int64_t now = run.trainer().result().steps;
  if (now != end) {
    throw StepDiffers(fmt::format("{} ends after {} steps when it is repeated, and had {}",
                                  history.run().string(), now, history.steps().count));
  }
  history.require_weights(end, run.trainer().parameters(), here);
}

namespace {

// The newest checkpoint of at most `last` and at least `first` steps whose state can be read; if
// `parts` checks files, that is the state of its step.
std::optional<RunCheckpoint> nearest_checkpoint(const RunHistory& history, std::int64_t first,
                                                std::int64_t last, const ReplayParts& parts,
                                                State& state) {
  for (RunCheckpoint& one : history.checkpoints()) {
    if (one.step > last || one.step < first) continue;
    try {
      state = read_state(one.file);
    } catch (const NewerVersion&) {
      throw;
    } catch (const Error& error) {
      if (parts.report) parts.report(error.what());
      continue;
    }
    if (parts.checks_files) history.require_state_of(one, state);
    return one;
  }
  return std::nullopt;
}

// Throws Error if the data are not those of the run, by any of its checkpoints: a training that
// begins anew is not compared with one. Returns false if there is none.
bool require_same_data(const RunHistory& history, const Run& run) {
  State state;
  const auto any =
      nearest_checkpoint(history, 0, RunHistory::kEver, {.checks_files = false}, state);
  if (!any) return false;
  StateVisitor visitor = StateVisitor::out_of(state);
  bind_data(visitor, run.trainer().objective());
  return true;
}

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

}  // namespace

Handover state_after(const RunHistory& history, std::int64_t step, const fs::path& scratch,
                     const ReplayParts& parts, const StateOfStep* known) {
  if (parts.checks_files) history.require_unchanged();
  history.require_step(step);
  const bool keeps = !scratch.empty();
  const bool knows = known != nullptr && !keeps && known->step <= step;
  State state;
  auto found = nearest_checkpoint(history, knows ? known->step + 1 : 0, step, parts, state);
  const bool is_read = found.has_value();
  if (!found && knows) {
    found = {.step = known->step, .segment = history.of_step(known->step + 1)};
    state = known->state;
  }
  const bool begins_anew = !found;
  if (begins_anew) history.require_beginning();

  std::size_t at = found ? found->segment : 0;
  std::int64_t taken = found ? found->step : 0;
  std::optional<Handover> handover;
  if (found) {
    handover = {.state = keeps ? std::move(state) : without_records(state), .records = {}};
    if (keeps) handover->records = records_of(history.segments()[at].run);
  }
  // The weights with which the run ended may be known, and only a training has them in their order.
  bool is_entered = begins_anew || (is_read && taken == history.steps().count);
  while (true) {
    const RunSegment& segment = history.segments()[at];
    const std::int64_t end = history.end_of(at, step);
    if (is_entered || taken < end) {
      const RemovedFolder removed{scratch};
      Run replay(segment.configuration, parts.load(segment.configuration),
                 handover ? RunLocation::fork(scratch, *std::move(handover))
                          : RunLocation::create(scratch));
      const bool knows_data = !begins_anew || taken > 0 || require_same_data(history, replay);
      repeat_steps(replay, history, segment, end, parts);
      taken = end;
      handover =
          keeps ? hand_over(replay) : Handover{.state = replay.trainer().state(), .records = {}};
      // Nothing else tells the data of a run without checkpoints.
      const bool repeats_first = !knows_data && end == 0 && parts.checks_files;
      if (repeats_first && history.steps().count > 0 && at == history.of_step(1)) {
        repeat_steps(replay, history, segment, 1, {});
      }
    }
    if (at + 1 == history.segments().size() || history.segments()[at + 1].begin > step) break;
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
  const RunHistory past(point.run, configuration_of_run(point.run, run));
  const RunConfiguration before = with_paths_from(point.run, past.segments().back().configuration);
  const RunConfiguration now = with_paths_from(point.run, run);
  require_forkable(before, now);
  fs::path scratch = folder;
  if (!folder.empty()) scratch = unused_path(folder.string() + ".replay");
  const RunHistory history = past.to_repeat(run);
  Handover state = state_after(history, point.step, scratch, parts);
  const auto digest = history.steps().digests.find(point.step);
  std::string note = fmt::format("{} after step {}", point.run.string(), point.step);
  if (digest != history.steps().digests.end()) {
    note += fmt::format(" (digest {})", digest->second.to_text());
  }
  if (const auto changed = changed_in_fork(before, now); !changed.empty()) {
    note += fmt::format(", with another {}", fmt::join(changed, ", "));
  }
  return RunLocation::fork(std::move(folder), std::move(state), std::move(note));
}

}  // namespace rubato
