#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/plan/batch_policy.hpp>
#include <rubato/plan/step_plan.hpp>
#include <rubato/plan/step_source.hpp>
#include <rubato/sim/cluster_model.hpp>

namespace rubato {

/// The steps of another source, which knows no time, in modelled time: each lasts as long as the
/// cluster's model says, and the next begins where it ends. All cores of a step stay to its end.
class TimedSource final : public StepSource {
 public:
  struct Options {
    ClusterModel cluster{};
    /// Samples in a minibatch, at least 1.
    std::int64_t minibatch_size = 32;
    /// At the steps for which the source does not say, at least 1.
    std::int64_t cores = 1;
  };

  /// `source` says what is offered, which `batch`, if there is one, decides on, and hears how long
  /// the step took. Throws Error for a source that is null or has a clock of its own, and for
  /// options out of their range.
  TimedSource(std::unique_ptr<StepSource> source, Options options,
              std::unique_ptr<BatchPolicy> batch = {});

  [[nodiscard]] std::optional<TraceStep> next(const SourceProgress& progress) const override;
  void taken(const TraceStep& step, const SourceProgress& after) override;
  [[nodiscard]] bool has_clock() const override { return true; }
  [[nodiscard]] std::optional<ClockTime> time_after(const SourceProgress& progress) const override;
  [[nodiscard]] std::vector<NamedNumber> decision_inputs(
      const SourceProgress& progress) const override;

  [[nodiscard]] SourceEnd end(const SourceProgress& progress) const override {
    return source_->end(progress);
  }
  [[nodiscard]] std::int64_t max_batch() const override;
  [[nodiscard]] bool needs_noise_scale() const override;
  [[nodiscard]] const Trace* trace() const override {
    return batch_ == nullptr ? source_->trace() : nullptr;
  }
  [[nodiscard]] std::string where(StepIndex step) const override { return source_->where(step); }
  void visit_state(StateVisitor& state, std::int64_t steps) override;

 private:
  // The next step; empty where there is none.
  [[nodiscard]] std::optional<BatchDecision> decide(const SourceProgress& progress) const;
  [[nodiscard]] std::int64_t minibatches(const TraceStep& step) const {
    return minibatches_of(step.batch_size, options_.minibatch_size);
  }
  // What the clock shows when such a step has been taken from now on.
  [[nodiscard]] ClockTime after(const TraceStep& step) const;
  [[nodiscard]] std::string binding() const;

  std::unique_ptr<StepSource> source_;
  Options options_;
  // Null where what the source says is taken.
  std::unique_ptr<BatchPolicy> batch_;
  // It remembers what it has computed.
  mutable StepTimes times_;
  ClockTime time_;
  std::int64_t steps_ = 0;
};

}  // namespace rubato
