#pragma once

#include <optional>
#include <string_view>

#include <rubato/steps/batch_policy.hpp>

namespace rubato {

/// What a source offers to a policy; empty where it has ended. Throws Error where that is to be one
/// (TraceEnd::error).
[[nodiscard]] std::optional<TraceStep> checked_offer(const StepSource& source,
                                                     const SourceProgress& progress);

/// What the policy decides, with the cores that are offered where it says none, and those of hosts
/// in proportion to the offered. Throws Error, at
/// `where`, for a batch below a sample, and cores that are not offered.
[[nodiscard]] BatchDecision checked_decision(const BatchPolicy& policy, const TraceStep& offered,
                                             const SourceProgress& progress,
                                             std::string_view where);

/// What a policy remembers, with its name, as a part of the state of its source. Throws Error for
/// the state of another policy, or of none.
void visit_policy(StateVisitor& state, BatchPolicy& policy);
/// The same for a source that may have no policy, which is then null.
void visit_policy(StateVisitor& state, BatchPolicy* policy);

}  // namespace rubato
