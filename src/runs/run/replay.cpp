#include "replay.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/state.hpp>
#include <rubato/runs/run_folder.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "runs/config/run_option.hpp"

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

// The location of the steps: the folder of a replay that was interrupted, or a new one.
RunLocation location_of(const ReplayRequest& request, const ReplayParts& parts,
                        const ForkPoint& point) {
  const fs::path folder =
      request.run / kReplays / fmt::format("{}-{}", request.first, request.last);
  if (is_there(folder)) {
    try {
      if (is_same(folder, request.configuration)) {
        return RunLocation::resume(folder, request.configuration);
      }
    } catch (const OutputError&) {
      throw;
    } catch (const Error&) {
      // It has nothing to continue from.
    }
  }
  Handover state = state_after(point, request.configuration, {}, parts);
  return RunLocation::fork(is_there(folder) ? unused_path(folder.string()) : folder,
                           std::move(state), fork_words(request.configuration));
}

}  // namespace

ReplayResult replay(const ReplayRequest& request, const ReplayParts& parts) {
  const RecordedSteps steps = recorded_steps(request.run);
  if (request.last > steps.count) {
    throw_error("--steps {}..{}: {} has {} steps; accepted: 1..{}", request.first, request.last,
                request.run.string(), steps.count, steps.count);
  }
  ReplayRequest asked = request;
  asked.configuration.from = fmt::format("{}@{}", request.run.string(), request.first - 1);
  Run run(asked.configuration, parts.load(asked.configuration),
          location_of(asked, parts, *asked.configuration.from));
  Trainer& trainer = run.trainer();
  const fs::path folder = run.location().path();
  ReplayResult result{.folder = folder};
  if (trainer.result().steps >= request.last) {
    result.compared = std::ssize(recorded_steps(folder).digests);
    return result;
  }
  if (parts.on_begin) parts.on_begin(request.run, trainer.result().steps + 1, request.last);
  trainer.add_observer<StepListener>(parts);
  if (request.weights_every > 0) {
    trainer.add_observer<WeightsOfSteps>(run.workload(), folder / "weights", request.weights_every);
  }
  trainer.add_observer<RepeatedSteps>(request.run, steps, request.last);
  try {
    static_cast<void>(run.execute());
    static_cast<void>(run.write_checkpoint());
  } catch (const DigestDiffers& differs) {
    result.difference = differs.what();
    if (const std::string why = run.warning(); !why.empty()) result.difference += "\n" + why;
  }
  result.compared = std::ssize(recorded_steps(folder).digests);
  return result;
}

}  // namespace rubato
