#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

/// A policy's decision on a step that is offered to it.
struct BatchDecision {
  /// The step to take. Without cores, it uses those offered. Its hosts' cores are ignored: each
  /// host gives its share of the offered ones.
  TraceStep step;
  /// The numbers behind the decision, each under a unique name: StepRecord::decision_inputs.
  std::vector<NamedNumber> inputs{};
};

/// A step that has been taken, as reported to a policy.
struct ObservedStep {
  TraceStep step;
  /// Progress of training including the step.
  SourceProgress after;
  /// Duration in modelled time, without lost attempts, waiting and checkpoints; empty without a
  /// clock. Measured seconds are withheld, because decisions would depend on the machine.
  std::optional<double> seconds{};
};

/// Decides the batch of each step, and may take fewer cores than there are; the counterpart of a
/// Rule, which decides the learning rate. PolicySource, ClockedSource and TimedSource use it.
class BatchPolicy {
 public:
  BatchPolicy() = default;
  BatchPolicy(const BatchPolicy&) = delete;
  BatchPolicy& operator=(const BatchPolicy&) = delete;
  virtual ~BatchPolicy() = default;

  /// The name, with everything that decisions depend on besides observations. A state is bound to
  /// it.
  [[nodiscard]] virtual std::string name() const = 0;

  /// The next step, instead of `offered`, which is the trace's or the availability's: a batch that
  /// is a multiple of the minibatch, and no more cores than are offered. It must depend only on its
  /// arguments and on earlier calls of observe(): it may be called any number of times, and again
  /// after a resume.
  [[nodiscard]] virtual BatchDecision decide(const TraceStep& offered,
                                             const SourceProgress& progress) const = 0;
  /// Receives each step once it has been taken.
  virtual void observe(const ObservedStep& step) { static_cast<void>(step); }

  /// Samples of the largest step that it may decide on, if none above `offered` is offered.
  [[nodiscard]] virtual std::int64_t max_batch(std::int64_t offered) const = 0;
  /// True if it uses SourceProgress::noise_scale, whose measurement costs time.
  [[nodiscard]] virtual bool needs_noise_scale() const { return false; }
  /// True if it needs ObservedStep::seconds.
  [[nodiscard]] virtual bool needs_seconds() const { return false; }

  /// The state that observe() has accumulated, to the bit; none by default.
  virtual void visit_state(StateVisitor& state) { static_cast<void>(state); }
};

struct FunctionPolicyOptions {
  /// The result of BatchPolicy::name().
  std::string name = "function";
  /// Samples of the largest step that it decides on; 0 means none above those offered.
  std::int64_t max_batch = 0;
  bool needs_noise_scale = false;
};

/// A policy that is a function of the offered step and of the progress of training:
///
///     // Twice the samples from the tenth epoch on.
///     const auto doubled = [](rubato::TraceStep step, const rubato::SourceProgress& so_far) {
///       if (so_far.epoch.value() >= 10) step.batch_size *= 2;
///       return rubato::BatchDecision{.step = step};
///     };
///     const rubato::FunctionPolicy policy(doubled, {.name = "doubled", .max_batch = 1024});
class FunctionPolicy final : public BatchPolicy {
 public:
  using Function =
      std::function<BatchDecision(const TraceStep& offered, const SourceProgress& progress)>;

  /// Throws Error if the function is empty.
  explicit FunctionPolicy(Function function, FunctionPolicyOptions options = {});

  [[nodiscard]] std::string name() const override { return options_.name; }
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const override {
    return function_(offered, progress);
  }
  [[nodiscard]] std::int64_t max_batch(std::int64_t offered) const override {
    return options_.max_batch > 0 ? options_.max_batch : offered;
  }
  [[nodiscard]] bool needs_noise_scale() const override { return options_.needs_noise_scale; }

 private:
  Function function_;
  FunctionPolicyOptions options_;
};

/// The steps of another source, such as a trace, with batches decided by a policy. It ends when the
/// source ends. Sources with a clock, ClockedSource and TimedSource, take a policy themselves.
class PolicySource final : public StepSource {
 public:
  /// Throws Error if either is null, for a source with a clock, and for a policy that needs one.
  PolicySource(std::unique_ptr<StepSource> offers, std::unique_ptr<BatchPolicy> policy);

  /// Throws Error if the policy decides on more cores than are offered.
  [[nodiscard]] std::optional<TraceStep> next(const SourceProgress& progress) const override;
  [[nodiscard]] std::vector<NamedNumber> decision_inputs(
      const SourceProgress& progress) const override;
  [[nodiscard]] SourceEnd end(const SourceProgress& progress) const override {
    return offers_->end(progress);
  }
  /// The source receives the step as it was taken.
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
