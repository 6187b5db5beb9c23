#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/state.hpp>
#include <rubato/loop/faults.hpp>
#include <rubato/loop/objective.hpp>
#include <rubato/loop/records.hpp>
#include <rubato/numbers/lr_schedule.hpp>

namespace rubato {

struct TrainOptions;

/// A training as its observers see it: what they may read, and how they can end it. Each call
/// receives it, so observers need not keep it. Its address does not change when its Trainer is
/// moved.
class Training {
 public:
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  virtual ~Training() = default;

  /// Ends training after the current step or epoch. An epoch that is cut short is evaluated like
  /// any other. The first reason is kept; an empty one becomes "stopped".
  virtual void stop(std::string reason) = 0;
  /// Makes fit() return after the current step or epoch; the next fit() continues as if it had not
  /// been interrupted.
  virtual void pause() = 0;
  /// Replaces TrainOptions::learning_rate from the next step on: the rate at the reference batch
  /// size, before schedule and rule. Part of the state. Throws Error for a rate that is negative or
  /// not finite.
  virtual void set_learning_rate(double rate) = 0;

  // The following members are the same as the Trainer's.

  [[nodiscard]] virtual const TrainOptions& options() const = 0;
  [[nodiscard]] virtual const TrainResult& result() const = 0;
  [[nodiscard]] virtual const std::vector<NamedArray>& parameters() const = 0;
  [[nodiscard]] virtual const std::vector<NamedArray>& buffers() const = 0;
  [[nodiscard]] virtual Objective& objective() const = 0;
  [[nodiscard]] virtual Workers& workers() const = 0;
  /// The same as the Trainer's. May be called in Observer::on_evaluate() and on_epoch().
  virtual void with_weights(std::string_view name, const std::function<void()>& use) {
    static_cast<void>(name);
    use();
  }
  /// May be called only in Observer::between_steps() and on_cut_short(); elsewhere it throws Error.
  [[nodiscard]] virtual State state() const = 0;

 protected:
  Training() = default;
};

/// Observes what a trainer does. All calls come from the thread that called Trainer::fit()
/// and count as wall time. In the order of an epoch:
///
///     on_epoch_begin
///     for each step: on_fault (if cores die), on_gradients (if wants_gradients), update,
///                    on_step, between_steps
///     on_cut_short (if the steps end in the middle of the epoch)
///     on_evaluate (if there is a test set)
///     on_epoch, between_steps
///
/// An exception ends training; one from on_gradients or on_fault also undoes the step. From other
/// calls, the remaining observers are still notified of the same event before the first exception
/// leaves Trainer::fit().
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  /// The name of its part of a state, unless it is added under another one; without "/", unique
  /// within a trainer. Only observers that save something need one.
  [[nodiscard]] virtual std::string_view name() const { return {}; }

  /// Called when the observer is added to a trainer; if this throws, it is not added.
  virtual void on_added(Training& training) { static_cast<void>(training); }
  /// Also called when fit() continues in the middle of an epoch, with what was known when the epoch
  /// began.
  virtual void on_epoch_begin(Training& training, const EpochStart& epoch) {
    static_cast<void>(training), static_cast<void>(epoch);
  }
  /// Returns whether on_gradients() is to be called for the step, which costs a copy of the
  /// gradient.
  [[nodiscard]] virtual bool wants_gradients(const StepPlan& step) const {
    static_cast<void>(step);
    return false;
  }
  /// The mean gradients of the step, by parameter name; valid until the call returns.
  virtual void on_gradients(Training& training, const StepPlan& step,
                            std::span<const NamedArray> gradients) {
    static_cast<void>(training), static_cast<void>(step), static_cast<void>(gradients);
  }
  /// Called when cores died in the step, which will be redone on `cores_left`.
  virtual void on_fault(Training& training, const StepPlan& step,
                        std::span<const FaultRecord> faults, std::int64_t cores_left) {
    static_cast<void>(training), static_cast<void>(step);
    static_cast<void>(faults), static_cast<void>(cores_left);
  }
  virtual void on_step(Training& training, const StepRecord& step) {
    static_cast<void>(training), static_cast<void>(step);
  }
  /// Called when there are no further steps in the middle of an epoch, before the epoch is
  /// evaluated as it is. Once there are more steps, training continues in the epoch from the state
  /// before that evaluation; Training::state() may be called here.
  virtual void on_cut_short(Training& training) { static_cast<void>(training); }
  /// Receives the epoch's record with the evaluation in it.
  virtual void on_evaluate(Training& training, const EpochRecord& epoch) {
    static_cast<void>(training), static_cast<void>(epoch);
  }
  virtual void on_epoch(Training& training, const EpochRecord& epoch) {
    static_cast<void>(training), static_cast<void>(epoch);
  }
  /// Called after each step and each epoch, once all observers have been notified of it;
  /// Training::state() may be called here.
  virtual void between_steps(Training& training) { static_cast<void>(training); }

  /// Visits what the observer remembers, which has a part of its own in the trainer's state; by
  /// default nothing. When loading, StateVisitor::has_none() says that the trainer's state was
  /// saved without such an observer; throws Error if the observer cannot continue from that. Also
  /// called once, to save, when the observer is added, and by Trainer::state_in_step() on another
  /// thread, while none of the other calls runs.
  virtual void visit_state(StateVisitor& state, const Training& training) {
    static_cast<void>(state), static_cast<void>(training);
  }
};

/// Returns the state that an observer of that name has saved in a trainer's state; empty if there
/// is none.
[[nodiscard]] State observer_state(const State& trainer, std::string_view name);

/// A user's own metric: a number for each epoch, in EpochRecord::metrics, which schedules,
/// EarlyStopping and BestWeights can follow.
struct OwnMetric {
  /// One line without "/", and none of kMetrics. The metrics of a trainer have different names.
  std::string name{};
  MetricMode mode = MetricMode::min;
  /// Called after the test of each epoch; empty if the epoch has no value. If something follows the
  /// metric, the number must be the same for every number of threads. An exception ends training
  /// with the state of the epoch's last step.
  std::function<std::optional<double>(Training& training, const EpochRecord& epoch)> value{};

  /// The metric as something to watch.
  operator WatchedMetric() const { return {name, mode}; }
};

/// The value of a metric in an epoch; empty if the epoch has none, because there is no test set or
/// it has no classes.
[[nodiscard]] std::optional<double> value_of(const WatchedMetric& metric, const EpochRecord& epoch);

}  // namespace rubato
