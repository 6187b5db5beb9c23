// A trace becomes a TraceSource, with a PolicySource or TimedSource around it if a batch policy or
// a modelled clock decides; devices over time become a ClockedSource. cluster_of() completes
// --cluster by the size of the gradient, which only a workload or the table of models knows, and by
// --price and --straggler. Predictions drive the same sources without training. simulate_optimum()
// simulates the policy that find_optimum() returns, and checks that both reckon the same time and
// money.

#include "run_steps.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/loop/faults.hpp>
#include <rubato/runs/workload.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policy.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/modelled_time.hpp>

#include "base/core/check.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/images/digits.hpp"
#include "loop/optim/make_optimizer.hpp"
#include "runs/config/chosen_parts.hpp"
#include "runs/config/values/model_choice.hpp"
#include "runs/config/values/trace_source.hpp"
#include "steps/sim/optimum.hpp"

namespace rubato {

namespace {

std::unique_ptr<StepSource> source_of(const RunConfiguration& run, const Trace& trace,
                                      std::int64_t gradient_bytes) {
  auto source = std::make_unique<TraceSource>(trace);
  auto batch = batch_policy_of(run);
  if (run.clock == Clock::real) {
    if (batch == nullptr) return source;
    return std::make_unique<PolicySource>(std::move(source), std::move(batch));
  }
  const ClusterModel cluster = cluster_of(run, gradient_bytes);
  if (cluster.market != MarketModel{}) {
    throw_error(
        "--cluster {}: the devices of a trace of steps neither come nor go; accepted: with an "
        "availability",
        run.cluster.text());
  }
  if (*run.market) {
    throw_error(
        "--market {}: the devices of a trace of steps are of no market; accepted: with an "
        "availability",
        run.market.text());
  }
  if (cluster.price.of_trace) {
    throw_error(
        "--price trace: a trace of steps has no prices; accepted: an availability with a column "
        "'price', or a number");
  }
  return std::make_unique<TimedSource>(
      std::move(source),
      TimedSource::Options{.cluster = cluster, .minibatch_size = run.minibatch, .cores = run.cores},
      std::move(batch));
}

// `market` decides instead of --market, if it is not null.
std::unique_ptr<ClockedSource> source_of(const RunConfiguration& run, const Zones& zones,
                                         std::int64_t gradient_bytes,
                                         std::shared_ptr<const MarketPolicy> market = {}) {
  if (!zones.several() && run.cluster->market.move != MoveModel{}) {
    throw_error(
        "--cluster {}: {} has one zone, and training moves nowhere; accepted: with several zones "
        "(docs/cluster.md)",
        run.cluster.text(), zones.source());
  }
  const StepOfDeviceCount step_of = step_of_devices(zones, run);
  std::int64_t most_devices = 0;
  for (const Zone& zone : zones.all()) {
    most_devices = std::max(most_devices, summary_of(zone.availability).most);
  }
  const std::string_view policy =
      run.market.empty() && zones.several() ? kPolicyOfZones : run.market.text();
  std::int64_t max_batch = step_of.max_batch();
  if (const auto on_demand = step_of(run.cluster->market.on_demand_devices)) {
    max_batch = std::max(max_batch, on_demand->batch_size);
  }
  if (!market) market = *run.market;
  return std::make_unique<ClockedSource>(
      zones, [step_of](std::int64_t devices, const SourceProgress&) { return step_of(devices); },
      ClockOptions{
          .cluster = cluster_of(run, gradient_bytes),
          .minibatch_size = run.minibatch,
          .on_idle = run.on_idle,
          .policy = fmt::format("{} of at most {} devices{}",
                                run.availability.empty() ? "weak" : run.availability.text(),
                                most_devices, policy.empty() ? "" : fmt::format(", {}", policy)),
          .max_batch = max_batch,
          .market = std::move(market),
          .deadline_seconds =
              run.deadline.value_or(std::numeric_limits<double>::infinity()) * kSecondsOfHour},
      batch_policy_of(run));
}

}  // namespace

std::int64_t bytes_exchanged(const RunConfiguration& run, std::int64_t gradient_bytes) {
  // Squares are as many values as gradients.
  return (facts_of(run.optimizer->method).squares ? 2 : 1) * gradient_bytes;
}

ClusterModel cluster_of(const RunConfiguration& run, std::int64_t gradient_bytes) {
  ClusterModel cluster = *run.cluster;
  if (cluster.gradient_bytes == kBytesOfModel) {
    cluster.gradient_bytes = bytes_exchanged(run, gradient_bytes);
  }
  cluster.price = *run.price;
  for (const Straggler& slow : *run.straggler) {
    cluster.slow_cores.push_back({.core = slow.core, .factor = slow.factor});
  }
  return cluster;
}

std::unique_ptr<StepSource> make_step_source(const RunConfiguration& run, const RunSteps& steps,
                                             std::int64_t gradient_bytes) {
  return std::visit(
      [&](const auto& of) -> std::unique_ptr<StepSource> {
        return source_of(run, of, gradient_bytes);
      },
      steps);
}

namespace {

std::int64_t samples_of(const RunConfiguration& run) {
  return run.model->own_samples().value_or(kBuiltinSamples);
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
  throw_error(
      "--batch {}: it depends on gradient noise, which is known only while training; accepted: "
      "fixed, or one of a plug-in's that does not",
      run.batch.text());
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

namespace {

PlanOptions plan_of(const RunConfiguration& run, std::optional<std::int64_t> samples) {
  return plan_options(run, samples ? *samples : samples_of(run), run.epochs);
}

SimulatedTraining simulate_source(const RunConfiguration& run, StepSource& source,
                                  const PlanOptions& plan,
                                  const std::function<void()>& after_each) {
  const ClusterModel cluster = cluster_of(run, known_gradient_bytes(run));
  double sent = 0;
  SimulatedTraining found{.fewest_cores = std::numeric_limits<std::int64_t>::max()};
  found.result = simulate(
      source, plan,
      [&](const SimulatedStep& step) {
        sent += static_cast<double>(host_bytes(cluster, step.plan));
        found.fewest_cores = std::min(found.fewest_cores, step.plan.cores);
        found.most_cores = std::max(found.most_cores, step.plan.cores);
        if (after_each) after_each();
      },
      budget_of(run));
  const SimulationResult& result = found.result;
  if (result.steps == 0) return found;
  found.mean_batch = static_cast<double>(result.samples) / static_cast<double>(result.steps);
  found.host_bytes = sent / static_cast<double>(result.steps);
  return found;
}

}  // namespace

SimulatedTraining simulate_training(const RunConfiguration& run, const RunSteps& steps,
                                    std::optional<std::int64_t> samples,
                                    const std::function<void()>& after_each) {
  const auto source = make_step_source(run, steps, known_gradient_bytes(run));
  SimulatedTraining found = simulate_source(run, *source, plan_of(run, samples), after_each);
  if (found.result.steps > 0) return found;
  throw_error(
      "--trace {}: there is no step to simulate; accepted: devices that stay as long as a step "
      "takes, within the budget",
      source_of(steps));
}

SimulatedOptimum simulate_optimum(const RunConfiguration& run, const RunSteps& steps,
                                  std::optional<std::int64_t> samples,
                                  std::vector<std::shared_ptr<const MarketPolicy>> policies,
                                  const std::function<void(std::int64_t states)>& on_states) {
  const Zones* const zones = std::get_if<Zones>(&steps);
  if (zones == nullptr || (!*run.market && !zones->several())) {
    throw_error("--regret compares market policies; accepted: with --market");
  }
  if (const Budget budget = budget_of(run); budget != Budget()) {
    throw_error("--regret compares whole trainings; accepted: without a budget of {}",
                to_text(budget));
  }
  const std::int64_t bytes = known_gradient_bytes(run);
  const auto make = [&](std::shared_ptr<const MarketPolicy> policy) {
    return source_of(run, *zones, bytes, std::move(policy));
  };
  const PlanOptions plan = plan_of(run, samples);
  const Optimum optimum =
      find_optimum(make, {.plan = plan, .policies = std::move(policies), .on_states = on_states});
  SimulatedOptimum found{.proven = optimum.proven, .least = optimum.least};
  if (optimum.policy == nullptr) return found;
  const auto source = make(optimum.policy);
  found.training = simulate_source(run, *source, plan, {});
  const ClockTime time = found.training->result.time.value_or(ClockTime());
  RUBATO_CHECK(time.money == optimum.money && time.seconds == optimum.seconds,
               "the clock reckons a schedule as the search for it did");
  return found;
}

std::string ended_by(const SimulationResult& result) {
  if (!result.ended || *result.ended == SourceEnd::Cause::budget) return result.reached;
  return *result.ended == SourceEnd::Cause::out_of_devices ? std::string(kOutOfDevices)
                                                           : "trace ended";
}

}  // namespace rubato
