#include "buckets_json.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace rubato::page {

Json chart_number(double value) {
  if (!std::isfinite(value)) return {};
  constexpr double kExact = 1e15;
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return static_cast<std::int64_t>(value);
  }
  // Five digits distinguish more values than a screen has pixels.
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

Json axis_rows_json() {
  Json json = Json::array();
  for (const AxisRow& axis : kAxisRows) {
    json.push_back({{"key", axis.key}, {"label", axis.label}, {"whole", axis.is_whole}});
  }
  return json;
}

Json axes_json(const Buckets& buckets) {
  Json json = Json::object();
  if (buckets.buckets().empty()) return json;
  const Position& last = buckets.buckets().back().at;
  for (std::size_t i = 0; i < kAxes; ++i) {
    if (last.values.at(i) == 0) continue;
    Json& values = json[std::string(kAxisRows.at(i).key)] = Json::array();
    for (const Buckets::Bucket& bucket : buckets.buckets()) {
      values.push_back(chart_number(bucket.at.values.at(i)));
    }
  }
  return json;
}

Json numbers_json(const Buckets& buckets, const std::string& name, double factor) {
  Json low = Json::array();
  Json mean = Json::array();
  Json high = Json::array();
  bool varies = false;
  for (const Buckets::Bucket& bucket : buckets.buckets()) {
    const Buckets::Range range = buckets.range_of(bucket, name);
    varies = varies || range.low < range.high;
    low.push_back(range.count == 0 ? Json() : chart_number(factor * range.low));
    mean.push_back(range.count == 0 ? Json() : chart_number(factor * range.mean()));
    high.push_back(range.count == 0 ? Json() : chart_number(factor * range.high));
  }
  if (!varies) return mean;
  return {{"low", std::move(low)}, {"mean", std::move(mean)}, {"high", std::move(high)}};
}

}  // namespace rubato::page
