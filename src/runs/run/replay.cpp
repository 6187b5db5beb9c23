// A replay is a run in RUN/replays that is forked at the step before its first one. When a segment
// of the history ends, state and records are handed over to another Run in the same folder, which
// continues with the options of the next segment. The options of Commands::replay, which say what
// is written, come from the request; all others are those of the segment. A folder that has the
// same steps and options is resumed at its last checkpoint. A step that differs ends the replay,
// and is a result and not an error.

#include "replay.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/state.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/fork_point.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReplays = "replays";

// Writes the weights after every Nth step.
class WeightsOfSteps final : public Observer {
 public:
  WeightsOfSteps(const Workload& workload, fs::path folder, std::int64_t every)
      : workload_(workload), folder_(std::move(folder)), every_(every) {}

  void between_steps(Training& training) override {
    const std::int64_t steps = training.result().steps;
    // An epoch has ended after a step that has been seen already.
    if (steps % every_ != 0 || std::exchange(written_, steps) == steps) return;
    fs::create_directories(folder_);
    write_file(folder_ / fmt::format("step-{}.{}", steps, workload_.weights_suffix()),
               workload_.weights(training.parameters(), training.buffers()));
  }

 private:
  const Workload& workload_;
  fs::path folder_;
  std::int64_t every_;
  std::int64_t written_ = 0;
};

// Returns whether a folder has the same steps, written in the same way, or the beginning of them.
bool is_same(const fs::path& folder, const RunConfiguration& asked) {
  const RunConfiguration there = with_paths_from(folder, configuration_of_run(folder, asked));
  const RunConfiguration now = with_paths_from(folder, asked);
  return std::ranges::all_of(run_options(Commands::replay), [&](const RunOption* option) {
    return option->affects == Affects::speed || option->text(there) == option->text(now);
  });
}

class Replay {
 public:
  Replay(const ReplayRequest& request, const ReplayParts& parts)
      : request_(request),
        parts_(parts),
        history_(RunHistory::of(request.run, request.configuration)),
        steps_(history_.steps()) {
    history_.require_unchanged();
    if (request_.last > steps_.count) {
      throw_error("--steps {}..{}: {} has {} steps; accepted: 1..{}", request_.first, request_.last,
                  request_.run.string(), steps_.count, steps_.count);
    }
  }

  ReplayResult execute() {
    ReplayResult result;
    try {
      bool has_more = repeat(begin());
      while (has_more) {
        has_more = repeat(RunLocation::fork_in(folder_, std::move(handover_), note()));
      }
    } catch (const StepDiffers& differs) {
      result.difference = differs.what();
    }
    result.folder = folder_;
    if (!is_there(folder_)) return result;
    const RecordedSteps repeated = recorded_steps(folder_);
    const auto in_run = [](const auto& all) {
      return [&all](const auto& entry) { return all.contains(entry.first); };
    };
    result.digests = std::ranges::count_if(repeated.digests, in_run(steps_.digests));
    if (request_.configuration.exact) {
      result.losses = std::ranges::count_if(repeated.numbers, in_run(steps_.numbers));
    }
    return result;
  }

 private:
  // The options of the steps of a segment, with the records that are wanted now.
  [[nodiscard]] RunConfiguration configuration_of(std::size_t segment) const {
    const RunSegment& of = history_.segments()[segment];
    RunConfiguration run = of.configuration;
    for (const RunOption* const option : run_options(Commands::replay)) {
      const auto text = option->text(request_.configuration);
      option->reset(run);
      if (text) option->set(run, *text);
    }
    run.checkpoint_every = request_.configuration.checkpoint_every;
    run.from = fmt::format("{}@{}", request_.run.string(), std::max(request_.first - 1, of.begin));
    return run;
  }

  [[nodiscard]] std::string note() const {
    return fmt::format("{} after step {}", request_.run.string(),
                       configuration_of(segment_).from->step);
  }

  // The location of the first steps: the folder of a replay that was interrupted, or a new one.
  // Sets folder_ and segment_.
  RunLocation begin() {
    const std::int64_t before = request_.first - 1;
    segment_ = history_.of_step(request_.first);
    folder_ = request_.run / kReplays / fmt::format("{}-{}", request_.first, request_.last);
    const bool is_taken = is_there(folder_);
    if (is_taken) {
      try {
        if (is_same(folder_, configuration_of(segment_))) return again();
      } catch (const OutputError&) {
        throw;
      } catch (const Error&) {
        // It has nothing to continue from.
      }
      segment_ = history_.of_step(request_.first);
      folder_ = unused_path(folder_.string());
    }
    return RunLocation::fork(folder_, state_after(history_, before, {}, parts_), note());
  }

  // Returns the location in which an interrupted replay continues.
  RunLocation again() {
    const auto states = CheckpointFolder(folder_ / RunFolder::kCheckpoints, 1).files();
    const std::int64_t taken =
        states.empty() ? 0 : CheckpointFolder::steps_of(states.front()).value_or(0);
    const RunConfiguration there = configuration_of_run(folder_, request_.configuration);
    segment_ = history_.of_step(std::clamp(taken + 1, request_.first, request_.last));
    // It may have ended with the last step of the segment before.
    while (history_.segments()[segment_].begin > there.from->step) --segment_;
    return RunLocation::resume(folder_, configuration_of(segment_));
  }

  // Repeats the steps of a segment. Returns whether others follow, from handover_ on.
  bool repeat(RunLocation location) {
    const RunConfiguration configuration = configuration_of(segment_);
    const std::int64_t end = history_.end_of(segment_, request_.last);
    Run run(configuration, parts_.load(configuration), std::move(location));
    if (run.trainer().result().steps < end) {
      if (request_.weights_every > 0) {
        run.trainer().add_observer<WeightsOfSteps>(run.workload(), folder_ / "weights",
                                                   request_.weights_every);
      }
      repeat_steps(run, history_, history_.segments()[segment_], end, parts_);
      static_cast<void>(run.write_checkpoint());
    }
    if (end == request_.last) return false;
    handover_ = hand_over(run);
    ++segment_;
    return true;
  }

  const ReplayRequest& request_;
  const ReplayParts& parts_;
  RunHistory history_;
  const RecordedSteps& steps_;
  fs::path folder_;
  // The segment whose steps come next, and the state with which they begin.
  std::size_t segment_ = 0;
  Handover handover_{};
};

}  // namespace

ReplayResult replay(const ReplayRequest& request, const ReplayParts& parts) {
  return Replay(request, parts).execute();
}

}  // namespace rubato
