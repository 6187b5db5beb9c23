#pragma once

#include <cstdint>
#include <vector>

#include <rubato/state/named_array.hpp>

namespace rubato {

/// The distribution of the finite numbers of an array: how many of them are in each bucket, and
/// their moments. Infinities and NaNs are not counted.
struct Histogram {
  /// Both 0 where no number is finite.
  double min = 0;
  double max = 0;
  /// How many numbers are finite.
  std::int64_t count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  /// Where the buckets end, in ascending order: bucket i holds the numbers from limits[i - 1] (the
  /// first bucket from minus infinity) to below limits[i]. Empty buckets in a row are merged.
  std::vector<double> limits{};
  /// The number of numbers in each bucket.
  std::vector<double> counts{};
};

/// The histogram of an array in TensorFlow's default buckets, for which TensorBoard is made: they
/// end at 0, at 1e-12 * 1.1^i for i = 0, 1, ... up to 1e20, at the negatives of these, and at the
/// ends of the range of double. Reads the array once. Throws Error unless it is F64, F32 or I64.
[[nodiscard]] Histogram histogram_of(const NamedArray& array);

}  // namespace rubato
