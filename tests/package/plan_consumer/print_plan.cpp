// Prints the first epoch of the built-in elastic trace on 8 cores.
#include <cstdio>
#include <cstdlib>

#include <rubato/steps/plan.hpp>
#include <rubato/steps/trace.hpp>

int main() {
  rubato::Planner planner(rubato::Trace::elastic(),
                          {.dataset_size = 12'000, .minibatch_size = 32, .cores = 8});
  const auto epoch = planner.next();
  if (!epoch) return EXIT_FAILURE;
  for (const rubato::StepPlan& step : epoch->steps) {
    std::printf("step %lld: %lld samples\n", static_cast<long long>(step.index.value()),
                static_cast<long long>(step.batch_size));
  }
  return EXIT_SUCCESS;
}
