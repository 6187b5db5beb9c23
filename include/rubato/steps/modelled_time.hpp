#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/batch_policy.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/walk.hpp>

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

/// What the clock does while there are too few devices for a step.
enum class OnIdle {
  pause,       ///< it runs, and training goes on where it was when devices come
  checkpoint,  ///< the same, and then going on takes ClusterModel::restart_seconds
};
inline constexpr std::array<Choice<OnIdle>, 2> kOnIdles{
    {{OnIdle::pause, "pause"}, {OnIdle::checkpoint, "checkpoint"}}};

/// What is to be trained with so many devices; empty where they are too few. Where it says no
/// cores, all of the devices are. A function of what it is given and nothing else.
using StepOfDevices =
    std::function<std::optional<TraceStep>(std::int64_t devices, const SourceProgress& progress)>;

struct ClockOptions {
  ClusterModel cluster{};
  /// Samples in a minibatch, at least 1.
  std::int64_t minibatch_size = 32;
  OnIdle on_idle = OnIdle::pause;
  /// Names the policy that the step comes from: what a state is bound to ("weak:quantum=4").
  std::string policy{};
  /// StepSource::max_batch(), and whether the policy goes by the noise scale.
  std::int64_t max_batch = 0;
  bool needs_noise_scale = false;
};

/// Steps in modelled time: each takes the devices that there are when it begins, and lasts as long
/// as the cluster's model says. The time is that of the step before, so that availability is read
/// at the time of each step, however long training takes in the end.
///
/// A core that leaves in the middle of a step ends it: what was computed is lost, and after
/// ClusterModel::restart_seconds the step is begun anew with the devices that there are then. Those
/// that come in the middle of a step take part from the next one on. It costs the devices of a
/// step for as long as it lasts, of lost attempts, too, and those of them that are left during a
/// restart: one that has left and comes back costs nothing until the step that it takes part in.
///
/// A budget of hours or money (SourceProgress::budget) that is reached while there is no step to
/// end with is an end of its own: the clock then shows the budget, and not what comes behind it.
class ClockedSource final : public StepSource {
 public:
  /// `step_of` says what so many devices are offered, which `batch`, if there is one, decides on:
  /// it sets the batch of a step that begins, may leave cores idle, which then cost nothing, and
  /// hears how long the step took. Throws Error for options out of their range, and a function that
  /// is empty.
  ClockedSource(Availability availability, StepOfDevices step_of, ClockOptions options,
                std::unique_ptr<BatchPolicy> batch = {});

  /// Empty when the availability ends before the step does; with TraceEnd::error that is an Error.
  /// Empty, too, when the budget is reached before the attempt begins that comes to its end. One
  /// that is reached already counts for nothing: what would come is then asked for to know whether
  /// an epoch is whole. Throws Error, too, where no step can ever end: each lasts longer than all
  /// cores stay.
  [[nodiscard]] std::optional<TraceStep> next(const SourceProgress& progress) const override;
  void taken(const TraceStep& step, const SourceProgress& after) override;
  [[nodiscard]] std::optional<ClockTime> time_after(const SourceProgress& progress) const override;
  [[nodiscard]] SourceEnd end(const SourceProgress& progress) const override;
  [[nodiscard]] std::vector<NamedNumber> decision_inputs(
      const SourceProgress& progress) const override;

  [[nodiscard]] bool has_clock() const override { return true; }
  [[nodiscard]] std::int64_t max_batch() const override;
  [[nodiscard]] bool needs_noise_scale() const override;
  [[nodiscard]] std::string where(StepIndex step) const override;
  void visit_state(StateVisitor& state, std::int64_t steps) override;

  /// After the steps taken so far.
  [[nodiscard]] const ClockTime& time() const { return time_; }

 private:
  // A step that has come to its end, or why there is none, and the time then.
  struct Outcome {
    std::optional<TraceStep> step{};
    ClockTime end{};
    // Of the attempt that came to its end, without a checkpoint.
    double seconds = 0;
    std::vector<NamedNumber> inputs{};
    SourceEnd::Cause cause = SourceEnd::Cause::out_of_devices;
  };
  // Until when the clock may run before another step is reached.
  struct Limit {
    double seconds = std::numeric_limits<double>::infinity();
    double core_seconds = std::numeric_limits<double>::infinity();
  };

  // What is left of the budget.
  [[nodiscard]] Limit limit_of(const Budget& budget) const;
  // There are no devices for a step any more: throws Error where an availability must not end
  // before training does.
  [[nodiscard]] Outcome ended(const ClockTime& time, const SourceProgress& progress) const;
  // The next step, from time_ on.
  [[nodiscard]] Outcome simulate(const SourceProgress& progress) const;
  // What the devices of a time are offered, if they suffice for a step, with its cores; and those,
  // or 0.
  [[nodiscard]] std::optional<TraceStep> step_at(double seconds,
                                                 const SourceProgress& progress) const;
  [[nodiscard]] std::int64_t cores_at(double seconds, const SourceProgress& progress) const;
  // What is made of that.
  [[nodiscard]] BatchDecision decide(const TraceStep& offered,
                                     const SourceProgress& progress) const;
  // What next() has come to, or would.
  [[nodiscard]] const Outcome& look_ahead(const SourceProgress& progress) const;
  // When there are first fewer cores after `begin`, and before `end`.
  [[nodiscard]] std::optional<double> loss_between(double begin, double end, std::int64_t cores,
                                                   const SourceProgress& progress) const;
  // Lets the clock run until `end`, at the cost of so many cores, each until it leaves. False where
  // the limit is reached first, and the clock shows it.
  [[nodiscard]] bool pass(ClockTime& time, double end, std::int64_t cores, const Limit& limit,
                          const SourceProgress& progress) const;
  [[nodiscard]] std::string binding() const;
  // A hash of how many devices there were at which time until then.
  [[nodiscard]] std::string devices_until(double end) const;

  Availability availability_;
  StepOfDevices step_of_;
  ClockOptions options_;
  // Null where what is offered is taken.
  std::unique_ptr<BatchPolicy> batch_;
  // It remembers what it has computed.
  mutable StepTimes times_;
  ClockTime time_;
  std::int64_t steps_ = 0;
  // What simulate() has last come to, and for what.
  mutable std::optional<Outcome> ahead_;
};

/// A step that a training would have taken.
using SimulatedStep = NextStep;

/// What a training would have come to.
struct SimulationResult {
  /// Whole epochs.
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::optional<ClockTime> time{};
  /// Why the source ended before the epochs did; empty where it did not.
  std::optional<SourceEnd::Cause> ended{};
  /// What of the budget was reached; empty where nothing was.
  std::string reached{};
};

/// The steps that a Trainer of these options takes from the source, without training: the same
/// plans and the same times to the last digit, as long as the source does not go by what only
/// training knows (iterations, gain, noise scale), which is empty here. `on_step`, if there is one,
/// hears of each. Throws Error for a step that cannot be taken, as Trainer::fit() does, and for a
/// budget of iterations, or of time or money where the source has no clock.
[[nodiscard]] SimulationResult simulate(
    StepSource& source, const PlanOptions& options,
    const std::function<void(const SimulatedStep& step)>& on_step = {}, const Budget& budget = {});

}  // namespace rubato
