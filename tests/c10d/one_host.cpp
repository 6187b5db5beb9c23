// One of several hosts as a process: one_host PORT RUN RANK COUNT STEPS trains so many steps, says
// so on stdout after each, and prints its loss at the end.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rubato/hosts/c10d_hosts.hpp>
#include <rubato/testing.hpp>

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  try {
    const rubato::C10dOptions options{.count = std::stoi(arguments.at(4)),
                                      .rank = std::stoi(arguments.at(3)),
                                      .port = std::stoi(arguments.at(1)),
                                      .run = arguments.at(2)};
    const rubato::TrainOptions training{.epochs = 1'000'000,
                                        .budget = {.samples = 32L * std::stol(arguments.at(5))},
                                        .minibatch_size = 2,
                                        .learning_rate = 0.001,
                                        .threads = 1,
                                        .hosts = rubato::c10d_hosts(options)};
    rubato::Trainer trainer(rubato::test::tiny_objective(), rubato::test::trace_of({32}), training);
    trainer.add_observer<rubato::test::Recorder>(
        [](rubato::Training&, const rubato::StepRecord& step) {
          fmt::print("{} {:.17g}\n", step.plan.index.value(), step.loss);
          std::fflush(stdout);
        });
    trainer.fit();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "host {}: {}\n", arguments.at(3), error.what());
    return 2;
  }
}
