#include "batch_policy.hpp"

#include <rubato/steps/batch_policies.hpp>
#include <rubato/steps/cluster_model.hpp>

namespace rubato {

bool has_batch_policy(const RunConfiguration& run) {
  return !is_fixed_batch_policy(run.batch);
}

std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run) {
  if (!has_batch_policy(run)) return nullptr;
  const ClusterModel& cluster = *run.cluster;
  // Hosts that train together exchange data in each step, however few cores take part in it.
  return make_batch_policy(run.batch,
                           {.minibatch_size = run.minibatch,
                            .reference_batch_size = run.reference_batch,
                            .cores_per_host = cluster.hosts > 1 ? 1 : cluster.cores_per_host},
                           run.extensions.batch_policies);
}

}  // namespace rubato
