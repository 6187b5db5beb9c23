#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

namespace rubato {

/// Says if a metric is better when it is smaller or when it is larger.
enum class MetricMode { min, max };

inline constexpr std::array<Choice<MetricMode>, 2> kMetricModes{
    {{MetricMode::min, "min"}, {MetricMode::max, "max"}}};

/// The built-in metrics that can be watched from epoch to epoch.
enum class Metric { train_loss, test_loss, test_accuracy };

inline constexpr std::array<Choice<Metric>, 3> kMetrics{{{Metric::train_loss, "train-loss"},
                                                         {Metric::test_loss, "test-loss"},
                                                         {Metric::test_accuracy, "test-accuracy"}}};

/// Losses are better when they are smaller, accuracies when they are larger.
[[nodiscard]] constexpr MetricMode mode_of(Metric metric) {
  return metric == Metric::test_accuracy ? MetricMode::max : MetricMode::min;
}

/// A metric that schedules and observers watch: a Metric, or a user's own (OwnMetric).
class WatchedMetric {
 public:
  WatchedMetric(Metric metric)
      : name_(choice_name(kMetrics, metric)), mode_(mode_of(metric)), metric_(metric) {}
  WatchedMetric(std::string name, MetricMode mode) : name_(std::move(name)), mode_(mode) {}
  /// A metric of the test of weights beside the model's, which have that name: "ema-test-loss".
  WatchedMetric(std::string weights, Metric metric)
      : name_((weights + "-").append(choice_name(kMetrics, metric))),
        mode_(mode_of(metric)),
        metric_(metric),
        weights_(std::move(weights)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] MetricMode mode() const { return mode_; }
  /// Empty for a user's own metric.
  [[nodiscard]] std::optional<Metric> metric() const { return metric_; }
  /// The name of the weights that are tested; empty for the model's.
  [[nodiscard]] const std::string& weights() const { return weights_; }
  friend bool operator==(const WatchedMetric&, const WatchedMetric&) = default;

 private:
  std::string name_;
  MetricMode mode_;
  std::optional<Metric> metric_;
  std::string weights_;
};

/// The progress of training so far.
struct TrainingProgress {
  /// Complete epochs.
  std::int64_t epochs = 0;
  /// Samples trained of the current epoch, and samples in the data set.
  std::int64_t epoch_samples = 0;
  std::int64_t dataset_size = 1;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Scale-invariant iterations: the sum of the steps' gains (Johnson et al. 2020, section 3.2).
  double iterations = 0;
};

/// The unit in which a schedule counts.
enum class ScheduleUnit {
  epochs,        ///< complete epochs, plus the trained share of the current one
  whole_epochs,  ///< complete epochs only, as PyTorch schedulers that step after each epoch
  steps,
  samples,
  iterations,  ///< scale-invariant iterations
};

inline constexpr std::array<Choice<ScheduleUnit>, 5> kScheduleUnits{
    {{ScheduleUnit::epochs, "epochs"},
     {ScheduleUnit::whole_epochs, "whole-epochs"},
     {ScheduleUnit::steps, "steps"},
     {ScheduleUnit::samples, "samples"},
     {ScheduleUnit::iterations, "iterations"}}};

/// The position of a schedule of that unit before the next step.
[[nodiscard]] double position_of(const TrainingProgress& progress, ScheduleUnit unit);

/// The base learning rate over the course of training; the rule multiplies it.
class LrSchedule {
 public:
  LrSchedule() = default;
  LrSchedule(const LrSchedule&) = delete;
  LrSchedule& operator=(const LrSchedule&) = delete;
  virtual ~LrSchedule() = default;

  /// The factor on the learning rate at `position` >= 0, in the unit that the owner counts.
  [[nodiscard]] virtual double factor(double position) const = 0;
  /// The momentum at `position`, from 0 to below 1: it replaces the momentum and the beta1 that the
  /// optimizer has (OptimizerNumbers). Empty, at all positions, for a schedule of the rate alone.
  [[nodiscard]] virtual std::optional<double> momentum(double position) const {
    static_cast<void>(position);
    return std::nullopt;
  }
  /// True if momentum() has values.
  [[nodiscard]] bool moves_momentum() const { return momentum(0).has_value(); }
  /// The position from which on nothing changes, of a schedule that leads to an end; empty for one
  /// that goes on. A product of schedules has the last end of its parts, although those that go on
  /// still change it.
  [[nodiscard]] virtual std::optional<double> end() const { return std::nullopt; }
  /// Receives the watched metric after each epoch.
  virtual void observe(double metric) { static_cast<void>(metric); }
  /// True if observe() has an effect.
  [[nodiscard]] virtual bool watches() const { return false; }

  /// The state derived from observed metrics; none by default.
  virtual void visit_state(NumberVisitor& numbers) { static_cast<void>(numbers); }
};

/// The names of the built-in schedules.
[[nodiscard]] std::vector<std::string_view> lr_schedule_names();
/// The same schedules with their formulas and arguments.
[[nodiscard]] std::vector<Strategy> lr_schedules();

/// A schedule by its text (base/spec.hpp), such as "cosine:total=40"; several with '+' between them
/// give their product. Throws Error for anything unknown, missing or out of range, and for two that
/// set the momentum.
///
/// All except constant and plateau take after=N, too: the position at which they begin
/// ("warmup:length=5+cosine:total=35,after=5"). The mode of plateau is that of the metric that is
/// watched, for which it is made; without one it is given in the text, or min. make() throws Error
/// for a mode that contradicts the metric.
using ScheduleChoice = Chosen<LrSchedule, std::optional<WatchedMetric>>;
/// @cond Doxygen does not know specialisations of members.
template <>
ScheduleChoice ScheduleChoice::built_in(std::string_view text);
/// @endcond

/// Schedules that users add, by name.
using OwnSchedules = Additions<std::unique_ptr<LrSchedule>>;
/// Reads such text with the user's schedules; they take after=N, too.
[[nodiscard]] ScheduleChoice choose_lr_schedule(std::string_view text, const OwnSchedules& own);

/// Throws Error if `schedule`, called `name`, would have a rate of 0 for the whole first epoch: a
/// warm-up from 0 that counts whole epochs.
void require_rate(const LrSchedule& schedule, std::string_view name, ScheduleUnit unit);

}  // namespace rubato
