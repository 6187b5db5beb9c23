#pragma once

#include <cstdint>
#include <utility>

#include <rubato/loop/observer.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

namespace rubato::test {

/// Executes a run without libtorch.
inline RunOutcome outcome_of(const RunConfiguration& configuration, RunLocation location = {}) {
  return rubato::Run(configuration, dense_workload(configuration), std::move(location)).execute();
}

/// Pauses training after so many steps in all.
class PauseAfter final : public Observer {
 public:
  explicit PauseAfter(std::int64_t steps) : steps_(steps) {}
  void between_steps(Training& training) override {
    if (training.result().steps == steps_) training.pause();
  }

 private:
  std::int64_t steps_;
};

}  // namespace rubato::test
