#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/plan/batch_policy.hpp>
#include <rubato/plan/step_source.hpp>

namespace rubato {

/// The steps of another source, such as a trace, with batches decided by a policy. It ends where
/// the source ends. Sources with a clock, ClockedSource and TimedSource, take a policy themselves.
class PolicySource final : public StepSource {
 public:
  /// Throws Error where one of them is null, for a source with a clock, and for a policy that needs
  /// one.
  PolicySource(std::unique_ptr<StepSource> offers, std::unique_ptr<BatchPolicy> policy);

  /// Throws Error where the policy decides on more cores than are offered.
  [[nodiscard]] std::optional<TraceStep> next(const SourceProgress& progress) const override;
  [[nodiscard]] std::vector<NamedNumber> decision_inputs(
      const SourceProgress& progress) const override;
  [[nodiscard]] SourceEnd end(const SourceProgress& progress) const override {
    return offers_->end(progress);
  }
  /// The source hears of the step as it was taken.
  void taken(const TraceStep& step, const SourceProgress& after) override;

  [[nodiscard]] std::int64_t max_batch() const override {
    return policy_->max_batch(offers_->max_batch());
  }
  [[nodiscard]] bool needs_noise_scale() const override {
    return policy_->needs_noise_scale() || offers_->needs_noise_scale();
  }
  [[nodiscard]] std::string where(StepIndex step) const override { return offers_->where(step); }
  /// A state is bound to the policy's name.
  void visit_state(StateVisitor& state, std::int64_t steps) override;

 private:
  [[nodiscard]] std::optional<BatchDecision> decide(const SourceProgress& progress) const;

  std::unique_ptr<StepSource> offers_;
  std::unique_ptr<BatchPolicy> policy_;
};

}  // namespace rubato
