#include "dry_run.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/cluster_model.hpp>

#include "runs/config/values/batch_policy.hpp"
#include "runs/config/values/engine.hpp"
#include "runs/run/workload/step_source.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kBuiltInImages = 12'000;

std::int64_t samples_of(const RunConfiguration& run) {
  return run.model->own_samples().value_or(kBuiltInImages);
}

// Bytes that the busiest of several hosts sends in a step; 0 for one host.
std::int64_t host_bytes(const ClusterModel& cluster, const StepPlan& step) {
  if (cluster.hosts == 1) return 0;
  constexpr std::int64_t kValueBytes = 4;
  std::int64_t most = 0;
  for (const HostTraffic& host :
       host_traffic(step.minibatches, host_weights_of(cluster, step.host_cores),
                    (cluster.gradient_bytes + kValueBytes - 1) / kValueBytes, kValueBytes)) {
    most = std::max(most, host.sent());
  }
  return most;
}

}  // namespace

void require_foreseeable(const RunConfiguration& run) {
  const auto policy = batch_policy_of(run);
  if (policy == nullptr || !policy->needs_noise_scale()) return;
  throw Error(
      fmt::format("--batch {}: it depends on gradient noise, which is known only while training; "
                  "accepted: fixed, or one of a plug-in's that does not",
                  run.batch));
}

std::vector<EpochPlan> first_epochs(Planner planner, std::optional<std::int64_t> epochs,
                                    const std::function<void()>& after_each) {
  if (epochs) require_epochs(planner, *epochs);
  const std::int64_t all = planner.trace().endless() ? 1 : std::numeric_limits<std::int64_t>::max();
  std::vector<EpochPlan> list;
  while (std::cmp_less(list.size(), epochs.value_or(all))) {
    std::optional<EpochPlan> epoch = planner.next();
    if (!epoch) break;
    list.push_back(*std::move(epoch));
    if (after_each) after_each();
  }
  return list;
}

SimulatedTraining simulate_training(const RunConfiguration& run, const RunSteps& steps,
                                    std::optional<std::int64_t> samples,
                                    const std::function<void()>& after_each) {
  const std::int64_t bytes = known_gradient_bytes(run);
  const auto source = make_step_source(run, steps, bytes);
  const ClusterModel cluster = cluster_of(run, bytes);
  double sent = 0;
  SimulatedTraining found{.fewest_cores = std::numeric_limits<std::int64_t>::max()};
  found.result = simulate(
      *source,
      {.dataset_size = samples ? *samples : samples_of(run),
       .minibatch_size = run.minibatch,
       .cores = run.cores,
       .remainder = run.remainder,
       .epochs = run.epochs},
      [&](const SimulatedStep& step) {
        sent += static_cast<double>(host_bytes(cluster, step.plan));
        found.fewest_cores = std::min(found.fewest_cores, step.plan.cores);
        found.most_cores = std::max(found.most_cores, step.plan.cores);
        if (after_each) after_each();
      },
      budget_of(run));
  const SimulationResult& result = found.result;
  if (result.steps == 0) {
    throw Error(
        fmt::format("--trace {}: there is no step to simulate; accepted: devices that stay as long "
                    "as a step takes, within the budget",
                    source_of(steps)));
  }
  found.mean_batch = static_cast<double>(result.samples) / static_cast<double>(result.steps);
  found.host_bytes = sent / static_cast<double>(result.steps);
  return found;
}

std::string ended_by(const SimulationResult& result) {
  if (!result.ended || *result.ended == SourceEnd::Cause::budget) return result.reached;
  return *result.ended == SourceEnd::Cause::out_of_devices ? std::string(kOutOfDevices)
                                                           : "trace ended";
}

}  // namespace rubato
