#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <rubato/loop/trainer.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/batch_policy.hpp>
#include <rubato/steps/modelled_time.hpp>

namespace rubato::test {

inline constexpr std::int64_t kAdaptiveMinibatch = 16;

// By noise scale on the elastic trace; by goodput on a spot market in modelled time.
inline std::unique_ptr<StepSource> adaptive_source(const std::string& policy,
                                                   std::int64_t reference) {
  auto batch = BatchPolicyChoice(policy).make({.minibatch_size = kAdaptiveMinibatch,
                                               .reference_batch_size = reference,
                                               .cores_per_host = 4});
  if (!batch->needs_seconds()) {
    return std::make_unique<PolicySource>(std::make_unique<TraceSource>(Trace::elastic()),
                                          std::move(batch));
  }
  const Availability availability = generate_availability(
      "spot:most=12,start=5,wait=0.005,life=0.02,hours=1,seed=3", TraceEnd::cycle);
  const StepOfDeviceCount step_of(
      availability,
      *AvailabilityChoice("strong:batch=" + std::to_string(reference)).make(kAdaptiveMinibatch));
  ClockOptions options;
  options.cluster = parse_cluster(
      "substep=0.005,bytes=400000,latency=1e-3,bandwidth=1e8,host-latency=1e-5,host-bandwidth=1e9,"
      "cores-per-host=4,update=0.01,restart=5");
  options.minibatch_size = kAdaptiveMinibatch;
  options.policy = "strong";
  options.max_batch = step_of.max_batch();
  return std::make_unique<ClockedSource>(
      availability,
      [step_of](std::int64_t devices, const SourceProgress&) { return step_of(devices); }, options,
      std::move(batch));
}

inline TrainOptions adaptive_options(std::int64_t reference) {
  return {.epochs = 1,
          .minibatch_size = kAdaptiveMinibatch,
          .learning_rate = 0.02,
          .reference_batch_size = reference,
          .rule = "adascale",
          .cores = 4,
          .threads = 2};
}

}  // namespace rubato::test
