#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/batch_policy.hpp>

#include "base/core/throw_error.hpp"
#include "batch_decision.hpp"

namespace rubato {

namespace {

constexpr std::string_view kPolicyName = "policy.name";
constexpr std::string_view kPolicyState = "policy";

// Reduces the hosts' cores to `cores` in total, in proportion; all are kept if there are not more.
// No host gets more than it had, because both numbers are whole.
std::vector<std::int64_t> fewer_cores(std::vector<std::int64_t> host_cores, std::int64_t cores) {
  const std::int64_t all = std::accumulate(host_cores.begin(), host_cores.end(), std::int64_t{0});
  if (cores < 1 || all <= cores) return host_cores;
  std::int64_t before = 0;
  for (std::int64_t& of_host : host_cores) {
    const std::int64_t end = before + of_host;
    of_host = end * cores / all - before * cores / all;
    before = end;
  }
  return host_cores;
}

}  // namespace

FunctionPolicy::FunctionPolicy(Function function, FunctionPolicyOptions options)
    : function_(std::move(function)), options_(std::move(options)) {
  if (!function_) throw Error("a policy without a function; accepted: one that is not empty");
}

std::optional<TraceStep> checked_offer(const StepSource& source, const SourceProgress& progress) {
  std::optional<TraceStep> offered = source.next(progress);
  const Trace* const trace = source.trace();
  if (offered || trace == nullptr || trace->end() != TraceEnd::error) return offered;
  throw_error(
      "{}: the trace ends before this step, and there is more to train; accepted: a longer one, or "
      "--on-trace-end hold, cycle or stop",
      source.where(progress.step));
}

BatchDecision checked_decision(const BatchPolicy& policy, const TraceStep& offered,
                               const SourceProgress& progress, std::string_view where) {
  BatchDecision decision = policy.decide(offered, progress);
  TraceStep& step = decision.step;
  if (!step.cores) step.cores = offered.cores;
  if (step.cores) step.host_cores = fewer_cores(offered.host_cores, *step.cores);
  const bool has_cores = !step.cores || *step.cores >= 1;
  const bool are_offered = !offered.cores || *step.cores <= *offered.cores;
  if (step.batch_size >= 1 && has_cores && are_offered) return decision;
  throw_error(
      "{}: the policy {} decides on {} samples{}; accepted: a minibatch at least{}", where,
      policy.name(), step.batch_size,
      step.cores ? fmt::format(" on {} cores", *step.cores) : std::string(),
      offered.cores ? fmt::format(", on 1 to {} cores", *offered.cores) : ", on a core at least");
}

void visit_policy(StateVisitor& state, BatchPolicy& policy) {
  const std::string name = policy.name();
  const std::string before = state.has(kPolicyName, true) ? state.bound(kPolicyName, name) : "none";
  // Another policy begins anew in a fork.
  if (state.forks() && before != name) return;
  if (before != name) {
    throw_error(
        "the batch sizes of the run are those of another policy, {}; accepted: the same, not {}",
        before, name);
  }
  StateVisitor of_policy = state.part(kPolicyState);
  policy.visit_state(of_policy);
}

void visit_policy(StateVisitor& state, BatchPolicy* policy) {
  if (policy != nullptr) return visit_policy(state, *policy);
  if (state.has(kPolicyName, false) && !state.forks()) {
    throw Error("the state is of another cluster or policy; accepted: the same");
  }
}

namespace {

constexpr std::string_view kOffers = "offers";

}  // namespace

PolicySource::PolicySource(std::unique_ptr<StepSource> offers, std::unique_ptr<BatchPolicy> policy)
    : offers_(std::move(offers)), policy_(std::move(policy)) {
  if (offers_ == nullptr || policy_ == nullptr) {
    throw Error("a source of steps by a policy needs both; accepted: any but null");
  }
  if (offers_->has_clock()) {
    throw Error(
        "the source of the steps has a clock, whose times are not those of other batches; "
        "accepted: "
        "a clock that asks the policy itself (ClockedSource, TimedSource)");
  }
  if (policy_->needs_seconds()) {
    throw_error(
        "the policy {} depends on how long steps take, and these have no clock: real seconds would "
        "make the result depend on the machine; accepted: a source with a clock of modelled time",
        policy_->name());
  }
}

std::optional<BatchDecision> PolicySource::decide(const SourceProgress& progress) const {
  const std::optional<TraceStep> offered = checked_offer(*offers_, progress);
  if (!offered) return std::nullopt;
  return checked_decision(*policy_, *offered, progress, where(progress.step));
}

std::optional<TraceStep> PolicySource::next(const SourceProgress& progress) const {
  const std::optional<BatchDecision> decision = decide(progress);
  if (!decision) return std::nullopt;
  return decision->step;
}

std::vector<NamedNumber> PolicySource::decision_inputs(const SourceProgress& progress) const {
  std::optional<BatchDecision> decision = decide(progress);
  if (!decision) return {};
  return std::move(decision->inputs);
}

void PolicySource::taken(const TraceStep& step, const SourceProgress& after) {
  offers_->taken(step, after);
  policy_->observe({.step = step, .after = after});
}

void PolicySource::visit_state(StateVisitor& state, std::int64_t steps) {
  visit_policy(state, *policy_);
  StateVisitor of_offers = state.part(kOffers);
  offers_->visit_state(of_offers, steps);
}

}  // namespace rubato
