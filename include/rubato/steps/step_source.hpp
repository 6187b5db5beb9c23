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

/// A number and what it is called, for people and logs.
struct NamedNumber {
  std::string name{};
  double value = 0;

  friend bool operator==(const NamedNumber&, const NamedNumber&) = default;
};

/// What a clock of modelled time shows, and what that time has cost.
struct ClockTime {
  /// Since training began.
  double seconds = 0;
  /// Sum over the devices that steps have held, each for as long as it was held.
  double core_seconds = 0;
  /// core_seconds at the price of the model.
  double money = 0;
  /// Of `seconds`, those without devices, those spent on attempts at steps that were lost, and
  /// those of restarts.
  double idle_seconds = 0;
  double lost_seconds = 0;
  double restart_seconds = 0;
  /// How often a step was restarted, or training after a time without devices.
  std::int64_t restarts = 0;

  friend bool operator==(const ClockTime&, const ClockTime&) = default;

  void visit_state(NumberVisitor& numbers);
};

/// Limits of a training besides its epochs: it ends, if necessary in the middle of an epoch, with
/// the step that reaches one of them. Hours and money can also be reached between steps: without
/// devices, in lost attempts at a step, and in restarts. All are above 0.
struct Budget {
  /// Scale-invariant: the sum of the steps' gains. A rule with smaller gains gets more steps
  /// (Johnson et al. 2020, section 3.2).
  std::optional<double> iterations{};
  std::optional<std::int64_t> samples{};
  /// Of modelled time, which the source of the steps has to have (StepSource::has_clock()), and
  /// what that time costs.
  std::optional<double> hours{};
  std::optional<double> money{};

  [[nodiscard]] bool needs_clock() const { return hours || money; }
  /// The hours, as the clock counts.
  [[nodiscard]] std::optional<double> seconds() const;

  friend bool operator==(const Budget&, const Budget&) = default;
};

/// Throws Error for a value that is not above 0 or not finite.
void require_valid(const Budget& budget);

/// "hours 3, money 12.5": what is limited; empty where nothing is.
[[nodiscard]] std::string to_text(const Budget& budget);

/// What a training has come to.
struct Spent {
  double iterations = 0;
  std::int64_t samples = 0;
  std::optional<ClockTime> time{};
};
/// The largest share of a limit that is used up, from 0 to 1; 0 without limits.
[[nodiscard]] double share_spent(const Budget& budget, const Spent& spent);
/// The limit that has been reached, as a reason to end: "100 iterations reached"; empty if none
/// has.
[[nodiscard]] std::string reached(const Budget& budget, const Spent& spent);

/// The progress of training when its next step is asked for.
struct SourceProgress {
  /// The step that is asked for; all before it have been taken.
  StepIndex step;
  /// In which it would begin.
  EpochIndex epoch;
  /// Trained so far.
  std::int64_t samples = 0;
  /// Scale-invariant iterations so far: the sum of the steps' gains.
  double iterations = 0;
  /// Of the last step; empty before the first.
  std::optional<double> gain{};
  /// What the source's clock shows; empty where it has none, and before the first step.
  std::optional<ClockTime> time{};
  /// What training may come to.
  Budget budget{};
  /// Samples left until the end of all epochs: the next step has at most these, whatever is asked
  /// for (StepPlanner::samples_left()). Empty if the end does not shorten it.
  std::optional<std::int64_t> samples_left{};
  /// The gradient noise scale in samples; where it is measured (StepSource::needs_noise_scale(),
  /// TrainOptions::log_noise) and enough steps have been taken.
  std::optional<double> noise_scale{};
};

/// Why there is no further step.
struct SourceEnd {
  enum class Cause {
    /// It has no more of them: a trace that has ended.
    exhausted,
    /// There are too few devices for a step, for good.
    out_of_devices,
    /// SourceProgress::budget is reached before another step is.
    budget,
  };
  Cause cause = Cause::exhausted;
  /// What its clock shows then: later than after the last step where it has waited for another one.
  /// Empty where that is the same, or there is no clock.
  std::optional<ClockTime> time{};
};

/// The message for a training that ended so: TrainResult::stopped, "stopped" in summary.json.
inline constexpr std::string_view kOutOfDevices = "out of devices";

/// The step as it is trained, where `asked` is asked for.
[[nodiscard]] TraceStep shortened(TraceStep asked, const SourceProgress& progress);

/// Gives the next step when it is needed: a trace, or a policy that follows the progress of
/// training.
class StepSource {
 public:
  StepSource() = default;
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;
  virtual ~StepSource() = default;

  /// The batch size of the next step, a multiple of the minibatch size from 1 to max_batch(), and
  /// its cores, where it says; empty where there is none, which ends training. What it asks for may
  /// be shortened (SourceProgress::samples_left). A function of `progress` and of what taken() has
  /// left behind, and of nothing else: it may be called any number of times, and again after a
  /// resume.
  [[nodiscard]] virtual std::optional<TraceStep> next(const SourceProgress& progress) const = 0;
  /// Called when the step has been taken, with the samples that it had in the end; `after` is the
  /// progress including it. After an exception from here there is no state.
  virtual void taken(const TraceStep& step, const SourceProgress& after) {
    static_cast<void>(step), static_cast<void>(after);
  }

  /// What its clock will show when the step that next() gives for `progress` has been taken; empty
  /// where it has no clock, or no such step.
  [[nodiscard]] virtual std::optional<ClockTime> time_after(const SourceProgress& progress) const {
    static_cast<void>(progress);
    return std::nullopt;
  }
  /// Why next() gives no step for `progress`.
  [[nodiscard]] virtual SourceEnd end(const SourceProgress& progress) const {
    static_cast<void>(progress);
    return {};
  }
  /// The numbers behind the step that next() gives for `progress`, for the logs; empty if there are
  /// none.
  [[nodiscard]] virtual std::vector<NamedNumber> decision_inputs(
      const SourceProgress& progress) const {
    static_cast<void>(progress);
    return {};
  }

  /// Whether it has a clock of modelled time.
  [[nodiscard]] virtual bool has_clock() const { return false; }

  /// Samples of the largest step that it will ever ask for; memory is reserved for that.
  [[nodiscard]] virtual std::int64_t max_batch() const = 0;
  /// Whether it goes by SourceProgress::noise_scale, whose measuring costs time.
  [[nodiscard]] virtual bool needs_noise_scale() const { return false; }
  /// The trace that it follows, where it does: then all steps are known beforehand.
  [[nodiscard]] virtual const Trace* trace() const { return nullptr; }
  /// Where a step comes from, for messages: "trace.csv:17".
  [[nodiscard]] virtual std::string where(StepIndex step) const;

  /// What taken() has left behind, and what binds a state to the `steps` taken so far. Throws Error
  /// for a state of other steps. By default nothing.
  virtual void visit_state(StateVisitor& state, std::int64_t steps) {
    static_cast<void>(state), static_cast<void>(steps);
  }
};

/// The steps of a trace. A state is bound to the batch sizes used so far; cores change no bit.
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
  /// StepSource::max_batch(), at least 1.
  std::int64_t max_batch = 0;
  bool needs_noise_scale = false;
};

/// A policy that is a function of what training has come to:
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

  /// Throws Error where the function is empty.
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
