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
#include <rubato/steps/market_policy.hpp>
#include <rubato/steps/step_plan.hpp>
#include <rubato/steps/step_source.hpp>
#include <rubato/steps/walk.hpp>

namespace rubato {

/// The steps of another source, which has no clock, in modelled time: each takes as long as the
/// cluster's model says, and the next begins when it ends. All cores of a step stay until its end.
class TimedSource final : public StepSource {
 public:
  struct Options {
    ClusterModel cluster{};
    /// Samples in a minibatch, at least 1.
    std::int64_t minibatch_size = 32;
    /// Cores of steps for which the source gives none, at least 1.
    std::int64_t cores = 1;
  };

  /// `source` offers steps; `batch`, if not null, decides on them and receives their durations.
  /// Throws Error for a source that is null or has a clock of its own, and for options out of
  /// range.
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
  // The next step; empty if there is none.
  [[nodiscard]] std::optional<BatchDecision> decide(const SourceProgress& progress) const;
  [[nodiscard]] std::int64_t minibatches(const TraceStep& step) const {
    return minibatches_of(step.batch_size, options_.minibatch_size);
  }
  // The time of the clock after taking such a step next.
  [[nodiscard]] ClockTime after(const TraceStep& step) const;
  [[nodiscard]] std::string binding() const;

  std::unique_ptr<StepSource> source_;
  Options options_;
  // Null if the offered steps are taken unchanged.
  std::unique_ptr<BatchPolicy> batch_;
  // Mutable because it caches its results.
  mutable StepTimes times_;
  ClockTime time_;
  std::int64_t steps_ = 0;
};

/// The behaviour of the clock while there are too few devices for a step.
enum class OnIdle {
  pause,       ///< time passes, and training continues where it was when devices return
  checkpoint,  ///< like pause, but continuing costs ClusterModel::restart_seconds
};
inline constexpr std::array<Choice<OnIdle>, 2> kOnIdles{
    {{OnIdle::pause, "pause"}, {OnIdle::checkpoint, "checkpoint"}}};

/// The step to train with that many devices; empty if they are too few. A step without cores uses
/// all of the devices. It must depend on nothing but its arguments.
using StepOfDevices =
    std::function<std::optional<TraceStep>(std::int64_t devices, const SourceProgress& progress)>;

struct ClockOptions {
  ClusterModel cluster{};
  /// Samples in a minibatch, at least 1.
  std::int64_t minibatch_size = 32;
  OnIdle on_idle = OnIdle::pause;
  /// Names the policy behind the steps, to which a state is bound ("weak:quantum=4").
  std::string policy{};
  /// StepSource::max_batch(), and StepSource::needs_noise_scale() of the policy.
  std::int64_t max_batch = 0;
  bool needs_noise_scale = false;
  /// Decides between the zones' spot markets and on-demand devices
  /// (MarketModel::on_demand_devices), for a training that should end within so many seconds; its
  /// name in `policy` binds a state. Null to train on the spot market alone; with several zones,
  /// the policy `spot` decides then.
  std::shared_ptr<const MarketPolicy> market{};
  double deadline_seconds = std::numeric_limits<double>::infinity();
};

/// Steps in modelled time: each uses the devices that there are when it begins, and takes as long
/// as the cluster's model says. It begins when the step before it ends, so the availability is read
/// at the time of each step, however long training takes.
///
/// A core that leaves in the middle of a step ends it: its results are lost, and after
/// ClusterModel::restart_seconds the step begins again with the devices that there are then; with
/// Loses::checkpoint, the steps since the last checkpoint are repeated first. Devices that arrive
/// in the middle of a step take part from the next one on, if they have joined. With a notice, a
/// step that would not end before an announced loss begins without the devices that leave; one that
/// is under way ends when the loss is announced. With Loses::checkpoint, where the others cannot go
/// on without them, a checkpoint is written instead, if it is complete before the loss.
///
/// Costs are those of the devices of a step for its duration, including lost attempts, those of the
/// remaining ones during a restart, and those of devices that join; a device that left and returned
/// costs nothing until the step in which it takes part again. Other kinds of Billing charge for all
/// devices that there are.
///
/// With several zones, training is in one of them at a time, with its devices and prices. After a
/// move to another zone, its state follows in the restart (ClockTime::restart_seconds), which takes
/// longer by ClusterModel::move_seconds(); ClusterModel::move_money() is paid when that begins.
/// On-demand devices are in the zone where the last step was, at first in the first zone.
///
/// If a budget of hours or money (SourceProgress::budget) is reached while there is no step to end
/// with, the source ends; its clock then shows exactly the budget.
class ClockedSource final : public StepSource {
 public:
  /// `zones` may be a single Availability; `step_of` offers a step for a number of devices;
  /// `batch`, if not null, decides its batch when it begins, may leave cores idle (which then cost
  /// nothing), and receives its duration. Throws Error for options out of range, for a market
  /// policy without the on-demand devices or the deadline that it needs, and if `step_of` is empty.
  ClockedSource(Zones zones, StepOfDevices step_of, ClockOptions options,
                std::unique_ptr<BatchPolicy> batch = {});
  ~ClockedSource() override;
  ClockedSource(const ClockedSource&) = delete;
  ClockedSource& operator=(const ClockedSource&) = delete;

  /// Empty if the availability ends before the step does; with TraceEnd::error this throws Error.
  /// Empty, too, if the budget is reached before the successful attempt begins. A budget reached
  /// earlier is ignored: the caller then asks only to know if an epoch is complete. Throws Error as
  /// well if no step can ever end, because each lasts longer than all cores stay.
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

  /// The time after the steps taken so far.
  [[nodiscard]] const ClockTime& time() const;

  /// Simulates the steps; its definition is rubato's own.
  class Clock;

 private:
  std::unique_ptr<Clock> clock_;
};

/// A step that a training would have taken.
using SimulatedStep = NextStep;

/// The result that a training would have had.
struct SimulationResult {
  /// Complete epochs.
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::optional<ClockTime> time{};
  /// The reason if the source ended before the epochs did; empty otherwise.
  std::optional<SourceEnd::Cause> ended{};
  /// The limit of the budget that was reached; empty if none was.
  std::string reached{};
};

/// The steps that a Trainer with these options takes from the source, without training: the same
/// plans and the same times to the last digit, unless the source depends on values known only in
/// training (iterations, gain, noise scale), which are empty here. `on_step`, if not empty,
/// receives each step. Throws Error for a step that cannot be taken, as Trainer::fit() does, and
/// for a budget of iterations, or of time or money if the source has no clock.
[[nodiscard]] SimulationResult simulate(
    StepSource& source, const PlanOptions& options,
    const std::function<void(const SimulatedStep& step)>& on_step = {}, const Budget& budget = {});

}  // namespace rubato
