#include "binding.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/state/sha256.hpp>

namespace rubato {

namespace {

constexpr std::string_view kRows = "trace.rows";
constexpr std::string_view kTrain = "data.train";
constexpr std::string_view kTest = "data.test";

// Of the batch sizes of the first steps; cores change no bit. Empty where the trace has not so
// many.
std::string rows_fingerprint(const Trace& trace, std::int64_t steps) {
  constexpr std::size_t kAtOnce = 4096;
  std::array<std::int64_t, kAtOnce> sizes{};
  std::size_t held = 0;
  Sha256 sha;
  const auto flush = [&] {
    sha.add(sizes.data(), held * sizeof(std::int64_t));
    held = 0;
  };
  for (StepIndex step; step.value() < steps; ++step) {
    const std::optional<TraceStep> row = trace.at(step);
    if (!row) return {};
    sizes[held++] = row->batch_size;
    if (held == kAtOnce) flush();
  }
  flush();
  return sha.hex();
}

void require_same_rows(const State& state, const Trace& trace, std::int64_t steps) {
  if (rows_fingerprint(trace, steps) == state.text(kRows)) return;
  throw Error(
      fmt::format("{}: the trace is not that of the run: its batch sizes differ within the {} "
                  "step{} taken so far; accepted: the same up to here, and any rows after it",
                  trace.where(StepIndex{steps - 1}), steps, steps == 1 ? "" : "s"));
}

// Where an epoch ends is decided by the row after it, which no step has used.
void require_same_epochs(const State& state, const Planner& planner, const TrainResult& result,
                         StepIndex epoch_begin) {
  if (!result.stopped.empty()) return;
  Planner again = planner;
  again.go_to(EpochIndex{0}, StepIndex{0});
  for (std::int64_t epoch = 0; epoch < result.epochs; ++epoch) static_cast<void>(again.next());
  // A part of an epoch was evaluated as it was; nothing can go on in it.
  const bool part = state.has("part.steps");
  if (!part && again.next_step() == epoch_begin) return;
  throw Error(
      fmt::format("{}: epoch {} of the run ended before this step, and in this trace it goes on; "
                  "accepted: a trace in which it ends there, too",
                  planner.trace().where(StepIndex{result.steps}), result.epochs + (part ? 1 : 0)));
}

void require_same_data(const State& state, std::string_view name, const std::string& fingerprint,
                       std::string_view what) {
  if (state.text(name) == fingerprint) return;
  throw Error(
      fmt::format("the {} data are not the data of the run; accepted: the same samples in the same "
                  "order",
                  what));
}

}  // namespace

void bind_state(State& state, const Planner& planner, const TrainResult& result,
                const Objective& objective) {
  state.put_text(kRows, rows_fingerprint(planner.trace(), result.steps));
  state.put_text(kTrain, objective.fingerprint());
  if (objective.has_test()) state.put_text(kTest, objective.test_fingerprint());
}

void require_bound(const State& state, const Planner& planner, const TrainResult& result,
                   StepIndex epoch_begin, const Objective& objective) {
  require_same_data(state, kTrain, objective.fingerprint(), "training");
  // Without one now, there is nothing that could differ.
  if (objective.has_test() && state.has_text(kTest)) {
    require_same_data(state, kTest, objective.test_fingerprint(), "test");
  }
  // No more than the epochs can have, and the one begun, so that nothing goes on for ever.
  if ((result.steps - 1) / planner.minibatches_per_epoch() > result.epochs) {
    throw Error(
        fmt::format("the state is damaged: {} steps in {} epochs", result.steps, result.epochs));
  }
  require_same_rows(state, planner.trace(), result.steps);
  require_same_epochs(state, planner, result, epoch_begin);
}

}  // namespace rubato
