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
  // A test set is compared only if there was one then and is one now.
  if (!objective.has_test()) return;
  const std::string test = objective.test_fingerprint();
  require_same(state.bound_if_there("data.test", test), test, "test");
}

// The epoch ends where the row after it says so, a row that no step has used.
void require_same_epochs(Planner planner, const Walk& walk, bool part) {
  planner.go_to(EpochIndex{0}, StepIndex{0});
  for (EpochIndex epoch; epoch < walk.epoch(); ++epoch) static_cast<void>(planner.next());
  // After a part of an epoch was evaluated, no step may follow in that epoch.
  if (!part && planner.next_step() == walk.first_step()) return;
  throw Error(
      fmt::format("{}: epoch {} of the run ended before this step, and in this trace it continues; "
                  "accepted: a trace in which it ends there, too",
                  planner.trace().where(walk.step()), walk.epoch().value() + (part ? 1 : 0)));
}

}  // namespace rubato
