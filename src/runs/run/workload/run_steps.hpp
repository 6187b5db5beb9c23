#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/plan.hpp>
#include <rubato/steps/step_source.hpp>

#include "runs/config/values/trace_source.hpp"

namespace rubato {

/// The bytes that cores exchange in a step of a run whose model's gradient has `gradient_bytes`:
/// that gradient, and its squares if the optimizer needs them.
[[nodiscard]] std::int64_t bytes_exchanged(const RunConfiguration& run,
                                           std::int64_t gradient_bytes);

/// The imagined cluster of a run whose model's gradient has `gradient_bytes`: that of --cluster,
/// completed by other options. Throws Error.
[[nodiscard]] ClusterModel cluster_of(const RunConfiguration& run, std::int64_t gradient_bytes);

/// The source of a run's steps: `steps` are those of load_run_steps(). Throws Error for steps that
/// cannot be taken in modelled time.
[[nodiscard]] std::unique_ptr<StepSource> make_step_source(const RunConfiguration& run,
                                                           const RunSteps& steps,
                                                           std::int64_t gradient_bytes);

// Predictions of what a training would do, without training.

/// The limit of the epochs of a plan that a user asks for.
inline constexpr std::int64_t kMaxPlannedEpochs = 1'000'000;

/// The first `epochs` epochs, 1 to kMaxPlannedEpochs. Without a number, all epochs that the trace
/// holds, or one if the trace is endless. `after_each`, if there is one, is called after each.
/// Throws Error as require_epochs() does, and what `after_each` throws.
[[nodiscard]] std::vector<EpochPlan> first_epochs(Planner planner,
                                                  std::optional<std::int64_t> epochs,
                                                  const std::function<void()>& after_each = {});

/// Throws Error for a batch policy that depends on gradient noise, which is known only while
/// training.
void require_foreseeable(const RunConfiguration& run);

/// The result of a simulated training.
struct SimulatedTraining {
  SimulationResult result{};
  /// The mean batch of its steps, in samples, and the least and the most cores.
  double mean_batch = 0;
  std::int64_t fewest_cores = 0;
  std::int64_t most_cores = 0;
  /// Bytes that the busiest of several hosts sends in a step, averaged over the steps; 0 for one
  /// host.
  double host_bytes = 0;
};

/// Simulates a training on `samples` samples (by default as many as the built-in data or the
/// model's own have) in modelled time. `steps` are those of run_steps_of(). `after_each`, if there
/// is one, is called after each step. Throws Error if there is no step, and as simulate() does, and
/// what `after_each` throws.
[[nodiscard]] SimulatedTraining simulate_training(const RunConfiguration& run,
                                                  const RunSteps& steps,
                                                  std::optional<std::int64_t> samples,
                                                  const std::function<void()>& after_each = {});

/// The cheapest schedule of a training in its markets (find_optimum()).
struct SimulatedOptimum {
  /// Empty if no schedule was found that ends by the deadline.
  std::optional<SimulatedTraining> training{};
  /// Optimum::proven and Optimum::least.
  bool proven = false;
  double least = 0;
};

/// The optimum for a run with a market policy; the arguments are those of simulate_training() and
/// of OptimumOptions. Throws Error for a run without markets or with a budget, and as
/// find_optimum() does.
[[nodiscard]] SimulatedOptimum simulate_optimum(
    const RunConfiguration& run, const RunSteps& steps, std::optional<std::int64_t> samples,
    std::vector<std::shared_ptr<const MarketPolicy>> policies,
    const std::function<void(std::int64_t states)>& on_states = {});

/// The reason why a simulation ended before its epochs did: "out of devices", "trace ended", or the
/// part of the budget that was reached; empty if it did not.
[[nodiscard]] std::string ended_by(const SimulationResult& result);

}  // namespace rubato
