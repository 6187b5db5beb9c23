#pragma once

#include <cstdint>
#include <memory>

#include <rubato/loop/observer.hpp>
#include <rubato/loop/trainer.hpp>
#include <rubato/testing.hpp>

namespace rubato::test {

/// Trains to the end, and returns the records.
inline std::shared_ptr<Recorder> recorded(Trainer& trainer) {
  auto recorder = trainer.add_observer<Recorder>();
  trainer.fit();
  return recorder;
}

/// Trains until the training has taken so many steps in all, and returns the records.
inline std::shared_ptr<Recorder> train_until(Trainer& trainer, std::int64_t steps) {
  auto recorder =
      trainer.add_observer<Recorder>([steps](Training& training, const StepRecord& step) {
        if (step.plan.index.value() + 1 == steps) training.pause();
      });
  trainer.fit();
  return recorder;
}

}  // namespace rubato::test
