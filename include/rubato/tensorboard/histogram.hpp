#pragma once

#include <cstdint>
#include <vector>

#include <rubato/state/named_array.hpp>

namespace rubato {

/// How numbers are distributed: counts of those in each of some buckets, and their moments. Of the
/// numbers that are finite; the others are not counted.
struct Histogram {
  /// Both 0 where there is no number.
  double min = 0;
  double max = 0;
  /// How many.
  std::int64_t count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  /// Where buckets end, in ascending order: bucket i has the numbers from limits[i - 1], or minus
  /// infinity, to below limits[i]. Of empty buckets in a row there is the last one only.
  std::vector<double> limits{};
  /// As many as there are limits.
  std::vector<double> counts{};
};

/// In TensorFlow's default buckets, which TensorBoard draws best: they end at 0, at 1e-12 times 1.1
/// to the power of 0, 1, ... up to 1e20, at the negatives of these, and at the ends of the range of
/// double. Takes one pass. Throws Error for an array that is neither F64, F32 nor I64.
[[nodiscard]] Histogram histogram_of(const NamedArray& array);

}  // namespace rubato
