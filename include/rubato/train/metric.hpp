#pragma once

#include <functional>
#include <optional>
#include <string>

#include <rubato/scaling/metric.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

class Training;  // train/observer.hpp

/// A metric of the user's own: a number for each epoch, in EpochRecord::metrics, which schedules,
/// EarlyStopping and BestWeights can follow.
struct OwnMetric {
  /// One line without "/", and none of kMetrics. The metrics of a trainer have different names.
  std::string name{};
  MetricMode mode = MetricMode::min;
  /// Called after the test of each epoch; empty if the epoch has no value. If something follows the
  /// metric, the number has to be the same for every number of threads. An exception ends training
  /// with the state of the epoch's last step.
  std::function<std::optional<double>(Training& training, const EpochRecord& epoch)> value{};

  /// As what is to be watched.
  operator WatchedMetric() const { return {name, mode}; }
};

/// The value of a metric in an epoch; empty where the epoch has none: no test set, or one without
/// classes.
[[nodiscard]] std::optional<double> value_of(const WatchedMetric& metric, const EpochRecord& epoch);

}  // namespace rubato
