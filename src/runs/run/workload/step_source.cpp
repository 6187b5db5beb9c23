#include "step_source.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include <rubato/loop/faults.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policy.hpp>
#include <rubato/steps/modelled_time.hpp>

#include "runs/config/values/batch_policy.hpp"
#include "runs/config/values/trace_source.hpp"

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
  return std::make_unique<TimedSource>(
      std::move(source),
      TimedSource::Options{.cluster = cluster_of(run, gradient_bytes),
                           .minibatch_size = run.minibatch,
                           .cores = run.cores},
      std::move(batch));
}

std::unique_ptr<StepSource> source_of(const RunConfiguration& run, const Availability& availability,
                                      std::int64_t gradient_bytes) {
  const StepOfDeviceCount step_of = step_of_devices(availability, run);
  return std::make_unique<ClockedSource>(
      availability,
      [step_of](std::int64_t devices, const SourceProgress&) { return step_of(devices); },
      ClockOptions{.cluster = cluster_of(run, gradient_bytes),
                   .minibatch_size = run.minibatch,
                   .on_idle = run.on_idle,
                   .policy = fmt::format("{} of at most {} devices",
                                         run.availability.empty() ? "weak" : run.availability,
                                         summary_of(availability).most),
                   .max_batch = step_of.max_batch()},
      batch_policy_of(run));
}

}  // namespace

ClusterModel cluster_of(const RunConfiguration& run, std::int64_t gradient_bytes) {
  ClusterModel cluster = *run.cluster;
  if (cluster.gradient_bytes == kBytesOfModel) cluster.gradient_bytes = gradient_bytes;
  cluster.price = run.price;
  for (const Straggler& slow : *run.straggler) {
    cluster.slow_cores.push_back({.core = slow.core, .factor = slow.factor});
  }
  return cluster;
}

std::unique_ptr<StepSource> make_step_source(const RunConfiguration& run, const RunSteps& steps,
                                             std::int64_t gradient_bytes) {
  return std::visit([&](const auto& of) { return source_of(run, of, gradient_bytes); }, steps);
}

}  // namespace rubato
