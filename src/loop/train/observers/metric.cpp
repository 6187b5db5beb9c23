#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/loop/observer.hpp>

#include "loop/train/checks/checked_metrics.hpp"
#include "loop/train/checks/checked_name.hpp"

namespace rubato {

std::optional<double> value_of(const WatchedMetric& metric, const EpochRecord& epoch) {
  if (!metric.metric()) {
    const auto found = std::ranges::find(epoch.metrics, metric.name(), &MetricValue::name);
    return found == epoch.metrics.end() ? std::nullopt : std::optional(found->value);
  }
  if (*metric.metric() == Metric::train_loss) return epoch.train_loss;
  if (!epoch.test) return std::nullopt;
  return *metric.metric() == Metric::test_loss ? epoch.test->loss : epoch.test->accuracy;
}

void require_metrics(std::span<const OwnMetric> metrics) {
  std::set<std::string_view> names;
  for (const auto& builtin : kMetrics) names.insert(builtin.name);
  for (const OwnMetric& metric : metrics) {
    require_name(metric.name, "metric");
    if (!metric.value) {
      throw Error(fmt::format("metric {} has no value; accepted: OwnMetric::value", metric.name));
    }
    if (names.insert(metric.name).second) continue;
    throw Error(fmt::format("two metrics are called {}; accepted: different names", metric.name));
  }
}

void require_known(const WatchedMetric& metric, std::span<const OwnMetric> metrics) {
  if (metric.metric()) return;
  const auto found = std::ranges::find(metrics, metric.name(), &OwnMetric::name);
  if (found == metrics.end()) {
    throw Error(fmt::format(
        "metric {} is watched, which the trainer does not have; accepted: one of kMetrics and of "
        "TrainOptions::metrics",
        metric.name()));
  }
  if (found->mode == metric.mode()) return;
  throw Error(fmt::format("metric {} is watched as if it were better when it is {}; accepted: {}",
                          metric.name(), metric.mode() == MetricMode::min ? "smaller" : "larger",
                          choice_name(kMetricModes, found->mode)));
}

}  // namespace rubato
