// The list of the choices of a step that contradict each other.

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/reducer.hpp>
#include <rubato/runs/workload.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "loop/train/step/step_part.hpp"
#include "run/runs_in_folders.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

// A configuration with options such as "clip-norm=1 reduce=mine"; the latter is no reproducible
// one.
RunConfiguration run_with(const std::string& options) {
  RunConfiguration run{.model = "softmax"};
  run.extensions.reducers.add("mine", [](Spec&) {
    return OwnReducer{.name = "mine", .of_float = [](const ReducerSize& size, Workers& workers) {
                        return make_reducer<float>("tree", size, workers);
                      }};
  });
  return test::with_options(std::move(run), options);
}

// As training says it, and with the name of the option.
std::vector<std::string> refusals_of(const RunConfiguration& run) {
  return {error_of([&] {
            const auto workload = dense_workload(run);
            return make_trainer(*workload, run, std::make_unique<TraceSource>(Trace::constant(64)),
                                train_options(run));
          }),
          error_of([&] { require_consistent(run); })};
}

TEST(Conflicts, AreRefusedInOneSentenceToUsersOfTheLibraryAndOfOptions) {
  std::set<const Conflict*> met;
  for (const char* const options :
       {"clip-norm=1 clip-value=1", "clip-value=1 optimizer=adam:second-moment=minibatch",
        "transform=noise:deviation=1 optimizer=adam:second-moment=minibatch",
        "rule=linear-momentum optimizer=adam", "memory=lookahead=samples", "reduce=mine",
        "schedule=one-cycle:total=9 optimizer=adagrad"}) {
    SCOPED_TRACE(options);
    const RunConfiguration run = run_with(options);
    const TrainOptions training = train_options(run);
    const MethodFacts facts = facts_of(training.optimizer.method);
    const bool moves = training.schedule.make(training.watch)->momentum(0).has_value();
    for (const StepPart& part : step_parts()) {
      for (const Conflict& conflict : part.conflicts) {
        const std::string why = conflict.why({.options = training,
                                              .rule = *training.rule,
                                              .follows_sums = facts.follows_sums,
                                              .squares = facts.squares,
                                              .has_momentum = has_momentum(training.optimizer),
                                              .moves_momentum = moves});
        if (why.empty()) continue;
        met.insert(&conflict);
        std::string choice(conflict.choice);
        const std::string sentence = ": " + why + "; accepted: " + std::string(conflict.accepted);
        std::string option = choice;
        std::ranges::replace(option, '_', '-');
        EXPECT_THAT(refusals_of(run),
                    testing::ElementsAre(choice + sentence, "--" + option + sentence));
      }
    }
  }
  for (const StepPart& part : step_parts()) {
    for (const Conflict& conflict : part.conflicts) {
      EXPECT_TRUE(met.contains(&conflict)) << "a case for " << conflict.choice;
    }
  }
}

}  // namespace
}  // namespace rubato
