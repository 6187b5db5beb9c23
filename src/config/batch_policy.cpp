#include "config/batch_policy.hpp"

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/policy/batch_policies.hpp>
#include <rubato/sim/cluster_model.hpp>

namespace rubato {

bool has_batch_policy(const RunConfiguration& run) {
  return !is_fixed_batch_policy(run.batch);
}

std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run) {
  if (!has_batch_policy(run)) return nullptr;
  const ClusterModel cluster = parse_cluster(run.cluster);
  // Hosts that train together exchange in each step, however few cores take part in it.
  return make_batch_policy(run.batch,
                           {.minibatch_size = run.minibatch,
                            .reference_batch_size = run.reference_batch,
                            .cores_per_host = cluster.hosts > 1 ? 1 : cluster.cores_per_host},
                           run.extensions.batch_policies);
}

void require_room_for_batches(const RunConfiguration& run, std::int64_t samples) {
  if (!has_batch_policy(run) || run.remainder == Remainder::carry) return;
  // Whatever is offered.
  const std::int64_t largest = batch_policy_of(run)->max_batch(0);
  const std::int64_t epoch = samples / run.minibatch * run.minibatch;
  if (largest <= epoch) return;
  throw Error(fmt::format(
      "--batch {}: a batch of {} samples is larger than an epoch ({}); accepted: max of "
      "at most {}, or more with --remainder carry",
      run.batch, largest, samples, epoch));
}

}  // namespace rubato
