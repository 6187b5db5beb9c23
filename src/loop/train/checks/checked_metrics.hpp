#pragma once

#include <span>

#include <rubato/loop/observer.hpp>

namespace rubato {

/// Throws Error for metrics that violate the rules of OwnMetric.
void require_metrics(std::span<const OwnMetric> metrics);

/// Throws Error unless the metric is built in or one of these.
void require_known(const WatchedMetric& metric, std::span<const OwnMetric> metrics);

}  // namespace rubato
