#pragma once

#include <optional>
#include <string_view>

#include <rubato/steps/batch_policy.hpp>

namespace rubato {

/// The step that a source offers to a policy; empty if the source has ended. Throws Error if its
/// end is an error (TraceEnd::error).
[[nodiscard]] std::optional<TraceStep> checked_offer(const StepSource& source,
                                                     const SourceProgress& progress);

/// The policy's decision, with the offered cores if it has none, and with hosts' cores in
/// proportion to the offered ones. Throws Error, naming `where`, for a batch below a sample, and
/// for cores that are not offered.
[[nodiscard]] BatchDecision checked_decision(const BatchPolicy& policy, const TraceStep& offered,
                                             const SourceProgress& progress,
                                             std::string_view where);

/// Visits the policy's state, with its name, as a part of the state of its source. Throws Error for
/// the state of another policy, or of none.
void visit_policy(StateVisitor& state, BatchPolicy& policy);
/// Like the function above, for a source without a policy if it is null.
void visit_policy(StateVisitor& state, BatchPolicy* policy);

}  // namespace rubato
