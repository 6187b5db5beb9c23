#pragma once

#include <cstdint>
#include <memory>

#include <rubato/config/run_configuration.hpp>
#include <rubato/plan/batch_policy.hpp>

namespace rubato {

/// Whether --batch asks for a policy that decides, so that the trace does not say what the steps
/// are.
[[nodiscard]] bool has_batch_policy(const RunConfiguration& run);

/// That policy; null where there is none. Throws Error.
[[nodiscard]] std::unique_ptr<BatchPolicy> batch_policy_of(const RunConfiguration& run);

/// Throws Error where an epoch of so many samples has no room for the largest batch that the policy
/// may decide on: what training would find out late.
void require_room_for_batches(const RunConfiguration& run, std::int64_t samples);

}  // namespace rubato
