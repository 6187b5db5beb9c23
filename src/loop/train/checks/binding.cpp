#include "binding.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

void bind_data(StateVisitor& state, const Objective& objective) {
  const auto require_same = [](const std::string& before, const std::string& now,
                               std::string_view what) {
    if (before == now) return;
    throw Error(
        fmt::format("the {} data are not the data of the run; accepted: the same samples in the "
                    "same order",
                    what));
  };
  const std::string train = objective.fingerprint();
  require_same(state.bound("data.train", train), train, "training");
  // Without one, then or now, there is nothing that could differ.
  if (!objective.has_test()) return;
  const std::string test = objective.test_fingerprint();
  require_same(state.bound_if_there("data.test", test), test, "test");
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
