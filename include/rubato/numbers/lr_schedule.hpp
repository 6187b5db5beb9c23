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

/// Whether a metric is better when it is smaller or when it is larger.
enum class MetricMode { min, max };

inline constexpr std::array<Choice<MetricMode>, 2> kMetricModes{
    {{MetricMode::min, "min"}, {MetricMode::max, "max"}}};

/// What can be watched from epoch to epoch.
enum class Metric { train_loss, test_loss, test_accuracy };

inline constexpr std::array<Choice<Metric>, 3> kMetrics{{{Metric::train_loss, "train-loss"},
                                                         {Metric::test_loss, "test-loss"},
                                                         {Metric::test_accuracy, "test-accuracy"}}};

/// Losses are better when they are smaller, accuracies when they are larger.
[[nodiscard]] constexpr MetricMode mode_of(Metric metric) {
  return metric == Metric::test_accuracy ? MetricMode::max : MetricMode::min;
}

/// What schedules and observers go by: a Metric, or one of the user's own (OwnMetric).
class WatchedMetric {
 public:
  WatchedMetric(Metric metric)
      : name_(choice_name(kMetrics, metric)), mode_(mode_of(metric)), metric_(metric) {}
  WatchedMetric(std::string name, MetricMode mode) : name_(std::move(name)), mode_(mode) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] MetricMode mode() const { return mode_; }
  /// Empty where it is one of the user's own.
  [[nodiscard]] std::optional<Metric> metric() const { return metric_; }
  friend bool operator==(const WatchedMetric&, const WatchedMetric&) = default;

 private:
  std::string name_;
  MetricMode mode_;
  std::optional<Metric> metric_;
};

/// How far training has come.
struct TrainingProgress {
  /// Complete ones.
  std::int64_t epochs = 0;
  /// Samples trained in the epoch that has begun, and samples in the data set.
  std::int64_t epoch_samples = 0;
  std::int64_t dataset_size = 1;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  /// Scale-invariant iterations: the sum of the steps' gains (Johnson et al. 2020, section 3.2).
  double iterations = 0;
};

/// What a schedule counts.
enum class ScheduleUnit {
  epochs,        ///< complete ones, and the share of the data set that was trained of the one begun
  whole_epochs,  ///< complete ones alone, as the schedulers of PyTorch that step after each epoch
  steps,
  samples,
  iterations,  ///< scale-invariant ones
};

inline constexpr std::array<Choice<ScheduleUnit>, 5> kScheduleUnits{
    {{ScheduleUnit::epochs, "epochs"},
     {ScheduleUnit::whole_epochs, "whole-epochs"},
     {ScheduleUnit::steps, "steps"},
     {ScheduleUnit::samples, "samples"},
     {ScheduleUnit::iterations, "iterations"}}};

/// The position of a schedule of that unit before the next step.
[[nodiscard]] double position_of(const TrainingProgress& progress, ScheduleUnit unit);

/// The base learning rate over the course of training. The rule multiplies what it gives.
class LrSchedule {
 public:
  LrSchedule() = default;
  LrSchedule(const LrSchedule&) = delete;
  LrSchedule& operator=(const LrSchedule&) = delete;
  virtual ~LrSchedule() = default;

  /// The factor on the learning rate at `position` >= 0, in the unit that its owner counts.
  [[nodiscard]] virtual double factor(double position) const = 0;
  /// Hears the watched metric after each epoch.
  virtual void observe(double metric) { static_cast<void>(metric); }
  /// Whether it does anything with what it hears.
  [[nodiscard]] virtual bool watches() const { return false; }

  /// What it has learned so far, from what it has heard. By default nothing.
  virtual void visit_state(NumberVisitor& numbers) { static_cast<void>(numbers); }
};

/// The names that make_lr_schedule() accepts.
[[nodiscard]] std::vector<std::string_view> lr_schedule_names();
/// The same with their arguments.
[[nodiscard]] std::vector<Strategy> lr_schedules();

/// The schedule that `text` asks for (base/spec.hpp), several with '+' between them: their product.
/// lr_schedules() has their arguments, lr_schedules.hpp and reduce_on_plateau.hpp the formulas.
///
/// All but constant and plateau take after=N, too: the position that is their 0 ("warmup:length=5 +
/// cosine:total=35,after=5", without the blanks). The mode of plateau is that of the metric it will
/// hear, `watched`; where that is not said it is min, or what the text says. Throws Error for what
/// is unknown, missing, out of its range or against the metric.
[[nodiscard]] std::unique_ptr<LrSchedule> make_lr_schedule(
    std::string_view text, const std::optional<WatchedMetric>& watched = {});

/// Schedules of the user's own, by name.
using OwnSchedules = Additions<std::unique_ptr<LrSchedule>>;
/// The same, with those of the user's own among them; they take after=N, too.
[[nodiscard]] std::unique_ptr<LrSchedule> make_lr_schedule(
    std::string_view text, const std::optional<WatchedMetric>& watched, const OwnSchedules& own);

/// Throws Error when `schedule`, which is called `name`, has a rate of 0 for a whole epoch before
/// anything is trained: a warm-up from 0 that counts whole epochs.
void require_rate(const LrSchedule& schedule, std::string_view name, ScheduleUnit unit);

}  // namespace rubato
