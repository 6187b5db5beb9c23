#pragma once

#include <array>

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

}  // namespace rubato
