#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/base/parse.hpp>
#include <rubato/base/state.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

/// A number with a name, for people and logs.
struct NamedNumber {
  std::string name{};
  double value = 0;

  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

/// The time of a modelled clock, and its costs.
struct ClockTime {
  /// Seconds since training began.
  double seconds = 0;
  /// Sum over the devices that were paid for, of the time that each was: while steps held it, if
  /// the model says nothing else (Billing).
  double core_seconds = 0;
  /// Cost of core_seconds at the price of the model.
  double money = 0;
  /// The parts of `seconds` without devices, in lost attempts at steps, and in restarts.
  double idle_seconds = 0;
  double lost_seconds = 0;
  double restart_seconds = 0;
  /// The parts in which too few devices had joined, in which steps were repeated after a loss, and
  /// in which checkpoints were written.
  double join_seconds = 0;
  double redone_seconds = 0;
  double checkpoint_seconds = 0;
  /// The number of restarts, of a step or of training after a time without devices.
  std::int64_t restarts = 0;

  /// The rest of `seconds`: steps that count.
  [[nodiscard]] double training_seconds() const {
    return seconds - idle_seconds - lost_seconds - restart_seconds - join_seconds - redone_seconds -
           checkpoint_seconds;
  }

  friend bool operator==(const ClockTime&, const ClockTime&) = default;

  /// All but the three parts that came last, which states of before do not have.
  void visit_state(NumberVisitor& numbers);
};

/// The samples that count for an hour of modelled time, and for an hour of a device that was paid
/// for; 0 where there is no such hour.
struct Goodput {
  double samples_per_hour = 0;
  double samples_per_core_hour = 0;
};
[[nodiscard]] Goodput goodput_of(std::int64_t samples, const ClockTime& time);

/// Limits of a training besides its epochs: it ends, if necessary in the middle of an epoch, with
/// the step that reaches one of them. Hours and money can also be reached between steps: without
/// devices, in lost attempts at a step, and in restarts. All are above 0.
struct Budget {
  /// Scale-invariant iterations: the sum of the steps' gains. A rule with smaller gains gets more
  /// steps (Johnson et al. 2020, section 3.2).
  std::optional<double> iterations{};
  std::optional<std::int64_t> samples{};
  /// Hours of modelled time, which requires a source with a clock (StepSource::has_clock()), and
  /// the cost of that time.
  std::optional<double> hours{};
  std::optional<double> money{};

  [[nodiscard]] bool needs_clock() const { return hours || money; }
  /// The hours in seconds, the unit of the clock.
  [[nodiscard]] std::optional<double> seconds() const;

  friend bool operator==(const Budget&, const Budget&) = default;
};

/// Throws Error for a value that is not above 0 or not finite.
void require_valid(const Budget& budget);

/// The limits as text, "hours 3, money 12.5"; empty if there are none.
[[nodiscard]] std::string to_text(const Budget& budget);

/// The resources that a training has used.
struct Spent {
  double iterations = 0;
  std::int64_t samples = 0;
  std::optional<ClockTime> time{};
};
/// The largest used share of a limit, from 0 to 1; 0 without limits.
[[nodiscard]] double share_spent(const Budget& budget, const Spent& spent);
/// The limit that has been reached, as a reason to end: "100 iterations reached"; empty if none
/// has.
[[nodiscard]] std::string reached(const Budget& budget, const Spent& spent);

/// The progress of training when its next step is asked for.
struct SourceProgress {
  /// The requested step; all before it have been taken.
  StepIndex step;
  /// The epoch in which it would begin.
  EpochIndex epoch;
  /// Samples trained so far.
  std::int64_t samples = 0;
  /// Scale-invariant iterations so far: the sum of the steps' gains.
  double iterations = 0;
  /// Gain of the last step; empty before the first.
  std::optional<double> gain{};
  /// Time of the source's clock; empty without a clock, and before the first step.
  std::optional<ClockTime> time{};
  /// The limits of the training.
  Budget budget{};
  /// Samples left until the end of all epochs: the next step has at most these, whatever is
  /// requested (StepPlanner::samples_left()). Empty if the end does not shorten it.
  std::optional<std::int64_t> samples_left{};
  /// Samples of all epochs, or of the budget if that is less: the whole of the training, unless
  /// something else ends it before.
  std::optional<std::int64_t> all_samples{};
  /// The gradient noise scale in samples, if it is measured (StepSource::needs_noise_scale(),
  /// TrainOptions::log_noise) and enough steps have been taken.
  std::optional<double> noise_scale{};
};

/// The reason why there is no further step.
struct SourceEnd {
  enum class Cause {
    /// The source has no more steps: a trace that has ended.
    exhausted,
    /// There will never be enough devices for a step.
    out_of_devices,
    /// SourceProgress::budget is reached before the end of another step.
    budget,
  };
  Cause cause = Cause::exhausted;
  /// Time of the clock then, which is later than after the last step if the source waited for
  /// another one. Empty if it is the same, or there is no clock.
  std::optional<ClockTime> time{};
};

/// The message for a training that ended for lack of devices: TrainResult::stopped, "stopped" in
/// summary.json.
inline constexpr std::string_view kOutOfDevices = "out of devices";

/// The step as it will be trained if `asked` is requested.
[[nodiscard]] TraceStep shortened(TraceStep asked, const SourceProgress& progress);

/// Provides the next step when it is needed: from a trace, or from a policy that follows the
/// progress of training.
class StepSource {
 public:
  StepSource() = default;
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;
  virtual ~StepSource() = default;

  /// The next step: a batch size from 1 to max_batch() that is a multiple of the minibatch size,
  /// and optionally its cores; empty if there is none, which ends training. The step may be
  /// shortened (SourceProgress::samples_left). The result must depend only on `progress` and on
  /// earlier calls of taken(): next() may be called any number of times, and again after a resume.
  [[nodiscard]] virtual std::optional<TraceStep> next(const SourceProgress& progress) const = 0;
  /// Called when a step has been taken, with its final number of samples; `after` is the progress
  /// including it. If this throws, training has no valid state.
  virtual void taken(const TraceStep& step, const SourceProgress& after) {
    static_cast<void>(step), static_cast<void>(after);
  }

  /// The time of the clock after taking the step that next() returns for `progress`; empty without
  /// a clock, or without such a step.
  [[nodiscard]] virtual std::optional<ClockTime> time_after(const SourceProgress& progress) const {
    static_cast<void>(progress);
    return std::nullopt;
  }
  /// The reason why next() returns no step for `progress`.
  [[nodiscard]] virtual SourceEnd end(const SourceProgress& progress) const {
    static_cast<void>(progress);
    return {};
  }
  /// The numbers behind the step that next() returns for `progress`, for the logs; empty if there
  /// are none.
  [[nodiscard]] virtual std::vector<NamedNumber> decision_inputs(
      const SourceProgress& progress) const {
    static_cast<void>(progress);
    return {};
  }

  /// True if it has a clock of modelled time.
  [[nodiscard]] virtual bool has_clock() const { return false; }

  /// Samples of the largest step that it will ever request; memory is reserved for it.
  [[nodiscard]] virtual std::int64_t max_batch() const = 0;
  /// True if it uses SourceProgress::noise_scale, whose measurement costs time.
  [[nodiscard]] virtual bool needs_noise_scale() const { return false; }
  /// The trace that it follows, or null; with a trace all steps are known beforehand.
  [[nodiscard]] virtual const Trace* trace() const { return nullptr; }
  /// The origin of a step, for messages: "trace.csv:17".
  [[nodiscard]] virtual std::string where(StepIndex step) const;

  /// The state that taken() has accumulated, and the data that bind a state to the `steps` taken so
  /// far. Throws Error for a state of other steps. None by default.
  virtual void visit_state(StateVisitor& state, std::int64_t steps) {
    static_cast<void>(state), static_cast<void>(steps);
  }
};

/// The steps of a trace. A state is bound to the batch sizes used so far, but not to cores, which
/// change no bit.
class TraceSource final : public StepSource {
 public:
  explicit TraceSource(Trace trace) : trace_(std::move(trace)) {}

  [[nodiscard]] std::optional<TraceStep> next(const SourceProgress& progress) const override {
    return trace_.at(progress.step);
  }
  [[nodiscard]] std::int64_t max_batch() const override;
  [[nodiscard]] const Trace* trace() const override { return &trace_; }
  [[nodiscard]] std::string where(StepIndex step) const override { return trace_.where(step); }
  void visit_state(StateVisitor& state, std::int64_t steps) override;

 private:
  Trace trace_;
};

struct FunctionSourceOptions {
  /// The result of StepSource::max_batch(), at least 1.
  std::int64_t max_batch = 0;
  bool needs_noise_scale = false;
};

/// A policy that is a function of the progress of training:
///
///     // As large as the noise allows, from 32 to 512.
///     const auto policy = [](const rubato::SourceProgress& so_far) -> rubato::TraceStep {
///       const double noise = so_far.noise_scale.value_or(32);
///       return {.batch_size = std::clamp(std::llround(noise / 32), 1LL, 16LL) * 32};
///     };
///     rubato::Trainer trainer(std::move(objective),
///                             std::make_unique<rubato::FunctionSource>(
///                                 policy, rubato::FunctionSourceOptions{512, true}),
///                             options);
class FunctionSource final : public StepSource {
 public:
  using Function = std::function<std::optional<TraceStep>(const SourceProgress& progress)>;

  /// Throws Error if the function is empty.
  FunctionSource(Function function, FunctionSourceOptions options);

  [[nodiscard]] std::optional<TraceStep> next(const SourceProgress& progress) const override {
    return function_(progress);
  }
  [[nodiscard]] std::int64_t max_batch() const override { return options_.max_batch; }
  [[nodiscard]] bool needs_noise_scale() const override { return options_.needs_noise_scale; }

 private:
  Function function_;
  FunctionSourceOptions options_;
};

}  // namespace rubato
