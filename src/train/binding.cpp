#include "binding.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

namespace rubato {

namespace {

constexpr std::string_view kSource = "source";
constexpr std::string_view kTrain = "data.train";
constexpr std::string_view kTest = "data.test";

void require_same_data(const State& state, std::string_view name, const std::string& fingerprint,
                       std::string_view what) {
  if (state.text(name) == fingerprint) return;
  throw Error(
      fmt::format("the {} data are not the data of the run; accepted: the same samples in the same "
                  "order",
                  what));
}

}  // namespace

void bind_state(State& state, const StepSource& source, const TrainResult& result,
                const Objective& objective) {
  State of_source;
  source.save(of_source, result.steps);
  state.put(kSource, std::move(of_source));
  state.put_text(kTrain, objective.fingerprint());
  if (objective.has_test()) state.put_text(kTest, objective.test_fingerprint());
}

void go_on_from(const State& state, StepSource& source, const TrainResult& result,
                const Objective& objective, std::int64_t minibatches_per_epoch) {
  require_same_data(state, kTrain, objective.fingerprint(), "training");
  // Without one now, there is nothing that could differ.
  if (objective.has_test() && state.has_text(kTest)) {
    require_same_data(state, kTest, objective.test_fingerprint(), "test");
  }
  // No more than the epochs can have, and the one begun, so that nothing goes on for ever.
  if ((result.steps - 1) / minibatches_per_epoch > result.epochs) {
    throw Error(
        fmt::format("the state is damaged: {} steps in {} epochs", result.steps, result.epochs));
  }
  source.load(state.part(kSource), result.steps);
}

// Where an epoch ends is decided by the row after it, which no step has used.
void require_same_epochs(const State& state, Planner planner, const TrainResult& result,
                         StepIndex epoch_begin) {
  if (!result.stopped.empty()) return;
  planner.go_to(EpochIndex{0}, StepIndex{0});
  for (std::int64_t epoch = 0; epoch < result.epochs; ++epoch) static_cast<void>(planner.next());
  // A part of an epoch was evaluated as it was; nothing can go on in it.
  const bool part = state.has("part.steps");
  if (!part && planner.next_step() == epoch_begin) return;
  throw Error(
      fmt::format("{}: epoch {} of the run ended before this step, and in this trace it goes on; "
                  "accepted: a trace in which it ends there, too",
                  planner.trace().where(StepIndex{result.steps}), result.epochs + (part ? 1 : 0)));
}

}  // namespace rubato
