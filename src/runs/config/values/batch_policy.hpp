#pragma once

#include <memory>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/batch_policy.hpp>

namespace rubato {

/// Whether --batch asks for a policy that decides, so that the trace does not say what the steps
/// are.
[[nodiscard]] bool has_batch_policy(const RunConfiguration& run);

/// That policy; null where there is none. Throws Error.
[[nodiscard]] std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run);

}  // namespace rubato
