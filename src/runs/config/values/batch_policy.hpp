#pragma once

#include <memory>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/batch_policy.hpp>

namespace rubato {

/// Whether --batch names a policy that decides the batch sizes, so that the trace does not
/// determine the steps.
[[nodiscard]] bool has_batch_policy(const RunConfiguration& run);

/// The policy of --batch; null if there is none. Throws Error.
[[nodiscard]] std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run);

}  // namespace rubato
