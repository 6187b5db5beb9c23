#pragma once

#include <functional>
#include <optional>
#include <string>

#include <rubato/scaling/metric.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

class Training;  // train/observer.hpp

/// A metric of the user's own: one number for each epoch, which observers find in
/// EpochRecord::metrics, and schedules, EarlyStopping and BestWeights may go by.
struct OwnMetric {
  /// One line without "/", and none of kMetrics. The metrics of a trainer have different names.
  std::string name{};
  MetricMode mode = MetricMode::min;
  /// Called after each epoch, when its test has been taken; empty where the epoch has none. To be
  /// the same number for every number of threads, where something goes by it. An exception ends
  /// training; the state is that of the epoch's last step.
  std::function<std::optional<double>(Training& training, const EpochRecord& epoch)> value{};

  /// As what is to be watched.
  operator WatchedMetric() const { return {name, mode}; }
};

/// The value of a metric in an epoch; empty where the epoch has none: no test set, or one without
/// classes.
[[nodiscard]] std::optional<double> value_of(const WatchedMetric& metric, const EpochRecord& epoch);

}  // namespace rubato
