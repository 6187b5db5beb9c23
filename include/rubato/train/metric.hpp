#pragma once

#include <optional>

#include <rubato/scaling/metric.hpp>
#include <rubato/train/records.hpp>

namespace rubato {

/// The value of a metric in an epoch; empty where the epoch has none: no test set, or one without
/// classes.
[[nodiscard]] std::optional<double> value_of(Metric metric, const EpochRecord& epoch);

}  // namespace rubato
