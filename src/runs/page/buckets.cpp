// Buckets and SubstepMap thin data in the same way while they are read: a bucket (a column of the
// map) holds `width` steps, and when the limit is reached, all of them are merged in pairs and the
// width doubles. So memory is bounded although the number of steps is not known in advance. A name
// may first appear in a late bucket, and earlier buckets then have shorter lists of ranges. Numbers
// in JSON have five digits, except whole numbers below 10^15.

#include "buckets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include <rubato/steps/trace.hpp>

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
  next_ = 0;
}

void Buckets::add(std::string_view name, double value) {
  if (!std::isfinite(value) || buckets_.empty()) return;
  if (next_ == names_.size() || names_[next_] != name) {
    auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      if (names_.size() == kMostNames) return;
      found = numbers_.emplace(name, names_.size()).first;
      names_.emplace_back(name);
    }
    next_ = found->second;
  }
  std::vector<Range>& ranges = buckets_.back().ranges;
  if (ranges.size() <= next_) ranges.resize(next_ + 1);
  ranges[next_++].add(value);
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

void SubstepMap::add(const std::vector<std::int64_t>& substeps, std::int64_t cores) {
  if (steps_ == width_ * static_cast<std::int64_t>(most_columns_)) {
    for (std::size_t i = 0; 2 * i < columns_.size(); ++i) {
      Column merged = std::move(columns_[2 * i]);
      const Column& second = columns_[2 * i + 1];
      merged.substeps.resize(std::max(merged.substeps.size(), second.substeps.size()));
      for (std::size_t core = 0; core < second.substeps.size(); ++core) {
        merged.substeps[core] += second.substeps[core];
      }
      for (const auto& [of_cores, steps] : second.steps) merged.steps[of_cores] += steps;
      columns_[i] = std::move(merged);
    }
    columns_.resize(columns_.size() / 2);
    width_ *= 2;
  }
  if (steps_ % width_ == 0) columns_.emplace_back();
  ++steps_;
  const auto all = std::max(
      substeps.size(), static_cast<std::size_t>(std::clamp<std::int64_t>(cores, 0, kMaxCores)));
  Column& column = columns_.back();
  column.substeps.resize(std::max(column.substeps.size(), substeps.size()));
  ++column.steps[all];
  differs_ = differs_ || (steps_ > 1 && cores_ != all);
  cores_ = std::max(cores_, all);
  for (std::size_t core = 0; core < substeps.size(); ++core) {
    column.substeps[core] += substeps[core];
    if (!first_) first_ = substeps[core];
    differs_ = differs_ || substeps[core] != *first_;
  }
  differs_ = differs_ || (all > substeps.size() && first_.value_or(0) != 0);
}

std::vector<std::vector<std::optional<double>>> SubstepMap::means() const {
  if (cores_ == 0) return {};
  const std::size_t group = cores_of_row();
  std::vector<std::vector<std::optional<double>>> rows((cores_ + group - 1) / group);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t begin = row * group;
    for (const auto& [substeps, steps] : columns_) {
      std::int64_t sum = 0;
      for (std::size_t core = begin; core < std::min(begin + group, substeps.size()); ++core) {
        sum += substeps[core];
      }
      // How often a core of the row took part.
      std::int64_t count = 0;
      for (const auto& [cores, number] : steps) {
        const std::size_t of_row = std::min(cores, begin + group) - std::min(cores, begin);
        count += number * static_cast<std::int64_t>(of_row);
      }
      rows[row].push_back(
          count == 0 ? std::nullopt
                     : std::optional(static_cast<double>(sum) / static_cast<double>(count)));
    }
  }
  return rows;
}

}  // namespace rubato::page
