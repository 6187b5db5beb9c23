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
  /// Without cores: those that are offered. What it says of hosts' cores counts for nothing: each
  /// gives its share of the offered ones.
  TraceStep step;
  /// The numbers behind the decision, each under a unique name: StepRecord::decision_inputs.
  std::vector<NamedNumber> inputs{};
};

/// A step that has been taken, as a policy hears of it.
struct ObservedStep {
  TraceStep step;
  /// What training has come to with it.
  SourceProgress after;
  /// Its duration in modelled time, without lost attempts, waiting and checkpoints; empty without a
  /// clock. The seconds of the program itself are withheld, because decisions would depend on the
  /// machine.
  std::optional<double> seconds{};
};

/// Decides the batch of each step, and may take fewer cores than there are: the counterpart of a
/// Rule, which decides the learning rate. PolicySource, ClockedSource and TimedSource ask
/// it.
class BatchPolicy {
 public:
  BatchPolicy() = default;
  BatchPolicy(const BatchPolicy&) = delete;
  BatchPolicy& operator=(const BatchPolicy&) = delete;
  virtual ~BatchPolicy() = default;

  /// The name, with everything that decisions depend on besides observations. Binds a state.
  [[nodiscard]] virtual std::string name() const = 0;

  /// The next step, where a trace or the availability alone would have taken `offered`: a batch
  /// that is a multiple of the minibatch, and no more cores than are offered. A function of its
  /// arguments and of what observe() has left behind, and of nothing else: it may be called any
  /// number of times, and again after a resume.
  [[nodiscard]] virtual BatchDecision decide(const TraceStep& offered,
                                             const SourceProgress& progress) const = 0;
  /// Hears of each step, once it has been taken.
  virtual void observe(const ObservedStep& step) { static_cast<void>(step); }

  /// Samples of the largest step that it ever decides on, where none above `offered` is offered.
  [[nodiscard]] virtual std::int64_t max_batch(std::int64_t offered) const = 0;
  /// Whether it goes by SourceProgress::noise_scale, whose measuring costs time.
  [[nodiscard]] virtual bool needs_noise_scale() const { return false; }
  /// Whether it needs ObservedStep::seconds.
  [[nodiscard]] virtual bool needs_seconds() const { return false; }

  /// What observe() has left behind, to the bit. By default nothing.
  virtual void visit_state(StateVisitor& state) { static_cast<void>(state); }
};

struct FunctionPolicyOptions {
  /// BatchPolicy::name().
  std::string name = "function";
  /// Samples of the largest step that it decides on; 0: none is larger than those offered.
  std::int64_t max_batch = 0;
  bool needs_noise_scale = false;
};

/// A policy that is a function of what is offered and of what training has come to:
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

  /// Throws Error where the function is empty.
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
