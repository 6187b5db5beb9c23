#include "binding.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

namespace rubato {

namespace {

constexpr std::string_view kTrain = "data.train";
constexpr std::string_view kTest = "data.test";

void require_same(const State& state, std::string_view name, const std::string& fingerprint,
                  std::string_view what) {
  if (state.text(name) == fingerprint) return;
  throw Error(
      fmt::format("the {} data are not the data of the run; accepted: the same samples in the same "
                  "order",
                  what));
}

}  // namespace

void bind_data(State& state, const Objective& objective) {
  state.put_text(kTrain, objective.fingerprint());
  if (objective.has_test()) state.put_text(kTest, objective.test_fingerprint());
}

void require_same_data(const State& state, const Objective& objective) {
  require_same(state, kTrain, objective.fingerprint(), "training");
  // Without one now, there is nothing that could differ.
  if (objective.has_test() && state.has_text(kTest)) {
    require_same(state, kTest, objective.test_fingerprint(), "test");
  }
}

// Where an epoch ends is decided by the row after it, which no step has used.
void require_same_epochs(Planner planner, const Walk& walk, bool part) {
  planner.go_to(EpochIndex{0}, StepIndex{0});
  for (EpochIndex epoch; epoch < walk.epoch(); ++epoch) static_cast<void>(planner.next());
  // A part of an epoch was evaluated as it was; nothing can go on in it.
  if (!part && planner.next_step() == walk.first_step()) return;
  throw Error(
      fmt::format("{}: epoch {} of the run ended before this step, and in this trace it goes on; "
                  "accepted: a trace in which it ends there, too",
                  planner.trace().where(walk.step()), walk.epoch().value() + (part ? 1 : 0)));
}

}  // namespace rubato
