#include "buckets.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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

}  // namespace rubato::page
