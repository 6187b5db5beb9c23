#pragma once

#include <array>
#include <optional>

#include <rubato/core/choice.hpp>
#include <rubato/scaling/reduce_on_plateau.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

/// What can be watched from epoch to epoch.
enum class Metric { train_loss, test_loss, test_accuracy };

inline constexpr std::array<Choice<Metric>, 3> kMetrics{{{Metric::train_loss, "train-loss"},
                                                         {Metric::test_loss, "test-loss"},
                                                         {Metric::test_accuracy, "test-accuracy"}}};

/// Its value in an epoch; empty where the epoch has none: no test set, or one without classes.
[[nodiscard]] std::optional<double> value_of(Metric metric, const EpochRecord& epoch);

/// Losses are better when they are smaller, accuracies when they are larger.
[[nodiscard]] constexpr MetricMode mode_of(Metric metric) {
  return metric == Metric::test_accuracy ? MetricMode::max : MetricMode::min;
}

}  // namespace rubato
