#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <rubato/plan/budget.hpp>
#include <rubato/plan/step_source.hpp>
#include <rubato/plan/walk.hpp>

namespace rubato {

/// A step that a training would have taken.
using SimulatedStep = NextStep;

/// What a training would have come to.
struct SimulationResult {
  /// Whole epochs.
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::optional<ClockTime> time{};
  /// Why the source ended before the epochs did; empty where it did not.
  std::optional<SourceEnd::Cause> ended{};
  /// What of the budget was reached; empty where nothing was.
  std::string reached{};
};

/// The steps that a Trainer of these options takes from the source, without training: the same
/// plans and the same times to the last digit, as long as the source does not go by what only
/// training knows (iterations, gain, noise scale), which is empty here. `on_step`, if there is one,
/// hears of each. Throws Error for a step that cannot be taken, as Trainer::fit() does, and for a
/// budget of iterations, or of time or money where the source has no clock.
[[nodiscard]] SimulationResult simulate(
    StepSource& source, const PlanOptions& options,
    const std::function<void(const SimulatedStep& step)>& on_step = {}, const Budget& budget = {});

}  // namespace rubato
