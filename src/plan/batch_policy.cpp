#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/plan/batch_policy.hpp>

#include "plan/batch_decision.hpp"

namespace rubato {

namespace {

constexpr std::string_view kPolicyName = "policy.name";
constexpr std::string_view kPolicyState = "policy";

}  // namespace

FunctionPolicy::FunctionPolicy(Function function, FunctionPolicyOptions options)
    : function_(std::move(function)), options_(std::move(options)) {
  if (!function_) throw Error("a policy without a function; accepted: one that is not empty");
}

std::optional<TraceStep> checked_offer(const StepSource& source, const SourceProgress& progress) {
  std::optional<TraceStep> offered = source.next(progress);
  const Trace* const trace = source.trace();
  if (offered || trace == nullptr || trace->end() != TraceEnd::error) return offered;
  throw Error(
      fmt::format("{}: the trace ends before this step, and there is more to train; "
                  "accepted: a longer one, or --on-trace-end hold, cycle or stop",
                  source.where(progress.step)));
}

BatchDecision checked_decision(const BatchPolicy& policy, const TraceStep& offered,
                               const SourceProgress& progress, std::string_view where) {
  BatchDecision decision = policy.decide(offered, progress);
  TraceStep& step = decision.step;
  if (!step.cores) step.cores = offered.cores;
  const bool has_cores = !step.cores || *step.cores >= 1;
  const bool are_offered = !offered.cores || *step.cores <= *offered.cores;
  if (step.batch_size >= 1 && has_cores && are_offered) return decision;
  throw Error(fmt::format(
      "{}: the policy {} decides on {} samples{}; accepted: a minibatch at least{}", where,
      policy.name(), step.batch_size,
      step.cores ? fmt::format(" on {} cores", *step.cores) : std::string(),
      offered.cores ? fmt::format(", on 1 to {} cores", *offered.cores) : ", on a core at least"));
}

void save_policy(State& state, const BatchPolicy& policy) {
  state.put_text(kPolicyName, policy.name());
  State own;
  policy.save(own);
  state.put(kPolicyState, std::move(own));
}

bool has_policy(const State& state) {
  return state.has_text(kPolicyName);
}

void load_policy(const State& state, BatchPolicy& policy) {
  const std::string before = has_policy(state) ? state.text(kPolicyName) : "none";
  if (before != policy.name()) {
    throw Error(fmt::format(
        "the batch sizes of the run are those of another policy, {}; accepted: the same, not {}",
        before, policy.name()));
  }
  policy.load(state.part(kPolicyState));
}

}  // namespace rubato
