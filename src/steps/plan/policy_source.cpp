#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/batch_policy.hpp>

#include "batch_decision.hpp"

namespace rubato {

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
    throw Error(
        fmt::format("the policy {} depends on how long steps take, and these have no clock: real "
                    "seconds would make the result depend on the machine; accepted: a source with "
                    "a clock of modelled time",
                    policy_->name()));
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
