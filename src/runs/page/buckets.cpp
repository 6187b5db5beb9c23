#include "buckets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace rubato::page {

void Buckets::Range::add(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
  sum += value;
  ++count;
}

void Buckets::Range::add(const Range& other) {
  low = std::min(low, other.low);
  high = std::max(high, other.high);
  sum += other.sum;
  count += other.count;
}

void Buckets::begin_step(const Position& at) {
  if (buckets_.empty() || buckets_.back().steps == width_) {
    if (buckets_.size() == most_) halve();
    buckets_.emplace_back();
  }
  buckets_.back().at = at;
  ++buckets_.back().steps;
}

void Buckets::add(std::string_view name, double value) {
  if (!std::isfinite(value) || buckets_.empty()) return;
  auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    if (names_.size() == kMostNames) return;
    found = numbers_.emplace(name, names_.size()).first;
    names_.emplace_back(name);
  }
  std::vector<Range>& ranges = buckets_.back().ranges;
  if (ranges.size() <= found->second) ranges.resize(found->second + 1);
  ranges[found->second].add(value);
}

Buckets::Range Buckets::range_of(const Bucket& bucket, std::string_view name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end() || found->second >= bucket.ranges.size()) return {};
  return bucket.ranges[found->second];
}

// Merges pairs of buckets. All buckets are full, and their number is even.
void Buckets::halve() {
  for (std::size_t i = 0; 2 * i < buckets_.size(); ++i) {
    Bucket merged = std::move(buckets_[2 * i]);
    const Bucket& second = buckets_[2 * i + 1];
    merged.at = second.at;
    merged.steps += second.steps;
    merged.ranges.resize(std::max(merged.ranges.size(), second.ranges.size()));
    for (std::size_t number = 0; number < second.ranges.size(); ++number) {
      merged.ranges[number].add(second.ranges[number]);
    }
    buckets_[i] = std::move(merged);
  }
  buckets_.resize(buckets_.size() / 2);
  width_ *= 2;
}

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

void SubstepMap::add(const std::vector<std::int64_t>& substeps) {
  if (steps_ == width_ * static_cast<std::int64_t>(most_columns_)) {
    for (std::size_t i = 0; 2 * i < columns_.size(); ++i) {
      std::vector<Sum> merged = std::move(columns_[2 * i]);
      const std::vector<Sum>& second = columns_[2 * i + 1];
      merged.resize(std::max(merged.size(), second.size()));
      for (std::size_t core = 0; core < second.size(); ++core) {
        merged[core].substeps += second[core].substeps;
        merged[core].count += second[core].count;
      }
      columns_[i] = std::move(merged);
    }
    columns_.resize(columns_.size() / 2);
    width_ *= 2;
  }
  if (steps_ % width_ == 0) columns_.emplace_back();
  ++steps_;
  std::vector<Sum>& column = columns_.back();
  column.resize(std::max(column.size(), substeps.size()));
  differs_ = differs_ || (steps_ > 1 && cores_ != substeps.size());
  cores_ = std::max(cores_, substeps.size());
  for (std::size_t core = 0; core < substeps.size(); ++core) {
    column[core].substeps += substeps[core];
    ++column[core].count;
    if (!first_) first_ = substeps[core];
    differs_ = differs_ || substeps[core] != *first_;
  }
}

std::vector<std::vector<std::optional<double>>> SubstepMap::means() const {
  if (cores_ == 0) return {};
  const std::size_t group = cores_of_row();
  std::vector<std::vector<std::optional<double>>> rows((cores_ + group - 1) / group);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const std::vector<Sum>& column : columns_) {
      Sum sum;
      for (std::size_t core = row * group; core < std::min((row + 1) * group, column.size());
           ++core) {
        sum.substeps += column[core].substeps;
        sum.count += column[core].count;
      }
      rows[row].push_back(sum.count == 0 ? std::nullopt
                                         : std::optional(static_cast<double>(sum.substeps) /
                                                         static_cast<double>(sum.count)));
    }
  }
  return rows;
}

}  // namespace rubato::page
