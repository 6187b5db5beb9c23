// The limits of the buckets are made by repeated multiplication, as TensorFlow makes its own. A
// Counter counts positive and negative numbers apart, both by magnitude, and histogram() joins them
// in ascending order. The bucket of a number is found by a table and one comparison (Buckets) and
// not by a binary search, because histograms may be made of every parameter of a model.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include <rubato/runs/tensorboard.hpp>

#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr double kFirstLimit = 1e-12;
constexpr double kLastLimit = 1e20;
constexpr double kGrowth = 1.1;

// Finds the bucket of a number in a few instructions. A table gives, for each 32nd part of each
// octave, how many limits lie below it. A part is narrower than a bucket, so at most one limit lies
// in it, and one comparison decides.
class Buckets {
 public:
  Buckets() {
    double limit = kFirstLimit;
    while (limit < kLastLimit) {
      positive_.push_back(limit);
      limit *= kGrowth;
    }
    positive_.push_back(std::numeric_limits<double>::max());
    first_key_ = key_of(kFirstLimit);
    const std::uint64_t last_key = key_of(kLastLimit);
    for (std::uint64_t key = first_key_; key <= last_key; ++key) {
      const double smallest = std::bit_cast<double>(key << kDropped);
      const auto bucket = std::lower_bound(positive_.begin(), positive_.end(), smallest);
      bucket_of_key_.push_back(static_cast<std::uint32_t>(bucket - positive_.begin()));
    }
  }

  // The limits above 0; those below 0 mirror them.
  [[nodiscard]] const std::vector<double>& positive() const { return positive_; }

  // The bucket of a finite number: how many limits its magnitude has reached, or, if the number is
  // negative, has passed, because a bucket includes its lower end.
  [[nodiscard]] std::size_t of(double magnitude, bool negative) const {
    const std::uint64_t key = std::max(key_of(magnitude), first_key_) - first_key_;
    const std::size_t bucket =
        bucket_of_key_[std::min<std::uint64_t>(key, bucket_of_key_.size() - 1)];
    if (bucket + 1 == positive_.size()) return bucket;
    const double limit = positive_[bucket];
    const bool above = negative ? magnitude > limit : magnitude >= limit;
    return bucket + static_cast<std::size_t>(above);
  }

 private:
  // A key keeps the exponent and the first five bits of the fraction.
  static constexpr int kDropped = 52 - 5;
  static std::uint64_t key_of(double magnitude) {
    return std::bit_cast<std::uint64_t>(magnitude) >> kDropped;
  }

  std::vector<double> positive_;
  std::uint64_t first_key_ = 0;
  std::vector<std::uint32_t> bucket_of_key_;
};

const Buckets& buckets() {
  static const Buckets all;
  return all;
}

class Counter {
 public:
  template <class T>
  void count(std::span<const T> values) {
    const Buckets& all = buckets();
    for (const T each : values) {
      const auto value = static_cast<double>(each);
      if (!std::isfinite(value)) continue;
      min_ = std::min(min_, value);
      max_ = std::max(max_, value);
      sum_ += value;
      squares_ += value * value;
      const bool negative = value < 0;
      ++counts_.at(negative)[all.of(std::abs(value), negative)];
    }
  }

  [[nodiscard]] Histogram histogram() const;

 private:
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
  double squares_ = 0;
  // Counts by magnitude: those of positive numbers, then those of negative ones.
  std::array<std::vector<std::int64_t>, 2> counts_{
      std::vector<std::int64_t>(buckets().positive().size()),
      std::vector<std::int64_t>(buckets().positive().size())};
};

void add_bucket(Histogram& histogram, double limit, std::int64_t count) {
  const bool replaces = count == 0 && !histogram.counts.empty() && histogram.counts.back() == 0;
  if (replaces) {
    histogram.limits.back() = limit;
    return;
  }
  histogram.limits.push_back(limit);
  histogram.counts.push_back(static_cast<double>(count));
  histogram.count += count;
}

Histogram Counter::histogram() const {
  const std::vector<double>& limits = buckets().positive();
  const auto& [positive, negative] = counts_;
  Histogram histogram{.sum = sum_, .sum_of_squares = squares_};
  if (min_ <= max_) {
    histogram.min = min_;
    histogram.max = max_;
  }
  add_bucket(histogram, -limits.back(), 0);
  for (std::size_t i = limits.size(); i-- > 0;) {
    add_bucket(histogram, i == 0 ? 0.0 : -limits[i - 1], negative[i]);
  }
  for (std::size_t i = 0; i < limits.size(); ++i) {
    add_bucket(histogram, limits[i], positive[i]);
  }
  return histogram;
}

}  // namespace

Histogram histogram_of(const NamedArray& array) {
  Counter counter;
  switch (array.type) {
    case ElementType::f64:
      counter.count(std::span<const double>(array.values<double>()));
      break;
    case ElementType::f32:
      counter.count(std::span<const float>(array.values<float>()));
      break;
    case ElementType::i64:
      counter.count(std::span<const std::int64_t>(array.values<std::int64_t>()));
      break;
    default:
      throw_error("'{}' is {}, which has no histogram; accepted: F64, F32, I64", array.name,
                  name_of(array.type));
  }
  return counter.histogram();
}

}  // namespace rubato
