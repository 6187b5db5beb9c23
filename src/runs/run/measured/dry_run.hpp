#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/plan.hpp>

#include "runs/config/values/trace_source.hpp"

// What a training would do, without training.

namespace rubato {

/// Of a plan that somebody asks for.
inline constexpr std::int64_t kMaxPlannedEpochs = 1'000'000;

/// The first `epochs` epochs, 1 to kMaxPlannedEpochs; where there is no number, all that the trace
/// holds, or one of a trace without end. `after_each`, if there is one, is called after each.
/// Throws Error as require_epochs() does, and what `after_each` throws.
[[nodiscard]] std::vector<EpochPlan> first_epochs(Planner planner,
                                                  std::optional<std::int64_t> epochs,
                                                  const std::function<void()>& after_each = {});

/// Throws Error for a batch policy that goes by the noise of gradients, which only training knows.
void require_foreseeable(const RunConfiguration& run);

/// A training that was simulated.
struct SimulatedTraining {
  SimulationResult result{};
  /// Of its steps: the mean batch, in samples, and the least and the most cores.
  double mean_batch = 0;
  std::int64_t fewest_cores = 0;
  std::int64_t most_cores = 0;
  /// Of several hosts: what the busiest sends in a step, in the mean over the steps; 0 of one.
  double host_bytes = 0;
};

/// A training on `samples` samples (by default as many as the built-in data have, or the model
/// brings) in modelled time. `steps` are those of run_steps_of(). `after_each`, if there is one, is
/// called after each step. Throws Error where there is no step, and as simulate() does, and what
/// `after_each` throws.
[[nodiscard]] SimulatedTraining simulate_training(const RunConfiguration& run,
                                                  const RunSteps& steps,
                                                  std::optional<std::int64_t> samples,
                                                  const std::function<void()>& after_each = {});

/// Why a simulation ended before its epochs did: "out of devices", "trace ended", or what of the
/// budget was reached; empty where it did not.
[[nodiscard]] std::string ended_by(const SimulationResult& result);

}  // namespace rubato
