#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <rubato/core/choice.hpp>

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

}  // namespace rubato
