#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/runs/tensorboard.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// As TensorFlow's histogram.cc makes them.
std::vector<double> default_limits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> limits;
  std::transform(positive.rbegin(), positive.rend(), std::back_inserter(limits), std::negate<>());
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

template <class T>
Histogram histogram_of_values(std::vector<T> values) {
  return histogram_of({.name = "values",
                       .type = element_type_of<T>(),
                       .shape = {static_cast<std::int64_t>(values.size())},
                       .data = values.data()});
}

// The counts in all of the buckets, by a search for each number.
std::vector<double> searched_counts(const std::vector<double>& values) {
  const std::vector<double> limits = default_limits();
  std::vector<double> counts(limits.size());
  for (const double value : values) {
    const auto above = std::upper_bound(limits.begin(), limits.end(), value);
    const auto bucket = std::min<std::ptrdiff_t>(above - limits.begin(), std::ssize(limits) - 1);
    ++counts[static_cast<std::size_t>(bucket)];
  }
  return counts;
}

// The same from a histogram that leaves empty buckets out.
std::vector<double> all_counts(const Histogram& histogram) {
  const std::vector<double> limits = default_limits();
  std::vector<double> counts(limits.size());
  for (std::size_t i = 0; i < histogram.limits.size(); ++i) {
    const auto at = std::find(limits.begin(), limits.end(), histogram.limits[i]);
    if (at == limits.end()) {
      ADD_FAILURE() << histogram.limits[i] << " is no limit";
      continue;
    }
    counts[static_cast<std::size_t>(at - limits.begin())] = histogram.counts[i];
  }
  return counts;
}

TEST(Histogram, CountsAsASearchDoes) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-16, 24);
  constexpr int kValues = 100'000;
  std::vector<double> values;
  values.reserve(kValues);
  for (int i = 0; i < kValues; ++i) {
    values.push_back(std::pow(10, exponent(random)) * (i % 2 == 0 ? 1 : -1));
  }
  EXPECT_EQ(all_counts(histogram_of_values(values)), searched_counts(values));
}

// Where one bucket ends and the next begins.
TEST(Histogram, CountsALimitInTheBucketThatItBegins) {
  std::vector<double> values;
  for (const double limit : default_limits()) {
    if (std::abs(limit) == std::numeric_limits<double>::max()) continue;
    values.push_back(limit);
    values.push_back(std::nextafter(limit, -1e300));
    values.push_back(std::nextafter(limit, 1e300));
  }
  EXPECT_EQ(all_counts(histogram_of_values(values)), searched_counts(values));
}

TEST(Histogram, CountsWhatIsTiniestAndLargest) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> values{
      0.0, -0.0, Limits::denorm_min(), -Limits::denorm_min(), Limits::max(), 1e20, -1e20, 1e-12};
  EXPECT_EQ(all_counts(histogram_of_values(values)), searched_counts(values));
  // It is of no bucket of TensorFlow's.
  const Histogram lowest = histogram_of_values<double>({Limits::lowest()});
  EXPECT_EQ(lowest.count, 1);
}

TEST(Histogram, HasTheMomentsAndNoEmptyBucketsInARow) {
  const Histogram histogram = histogram_of_values<float>({0.5F, -2, 0.5F, 0});
  EXPECT_EQ(histogram.min, -2);
  EXPECT_EQ(histogram.max, 0.5);
  EXPECT_EQ(histogram.count, 4);
  EXPECT_EQ(histogram.sum, -1);
  EXPECT_EQ(histogram.sum_of_squares, 4.5);
  EXPECT_THAT(histogram.counts, ElementsAre(0, 1, 0, 1, 0, 2, 0));
  ASSERT_EQ(histogram.limits.size(), 7U);
  EXPECT_TRUE(std::is_sorted(histogram.limits.begin(), histogram.limits.end()));
  EXPECT_LE(histogram.limits[0], -2);
  EXPECT_GT(histogram.limits[1], -2);
  EXPECT_EQ(histogram.limits[2], 0) << "below the bucket that begins with 0";
  EXPECT_EQ(histogram.limits[6], std::numeric_limits<double>::max());
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  using Limits = std::numeric_limits<float>;
  const Histogram histogram =
      histogram_of_values<float>({Limits::quiet_NaN(), 1, Limits::infinity(), -Limits::infinity()});
  EXPECT_EQ(histogram.count, 1);
  EXPECT_EQ(histogram.min, 1);
  EXPECT_EQ(histogram.max, 1);
  EXPECT_EQ(histogram.sum, 1);
  const Histogram nothing = histogram_of_values<float>({Limits::quiet_NaN()});
  EXPECT_EQ(nothing.count, 0);
  EXPECT_EQ(nothing.min, 0);
  EXPECT_EQ(nothing.max, 0);
  EXPECT_THAT(nothing.counts, ElementsAre(0));
}

TEST(Histogram, TakesWholeNumbersAndRefusesBytes) {
  EXPECT_EQ(histogram_of_values<std::int64_t>({3, -4}).sum, -1);
  std::uint8_t byte = 0;
  EXPECT_EQ(
      error_of([&] {
        return histogram_of({.name = "mask", .type = ElementType::u8, .shape = {1}, .data = &byte});
      }),
      "'mask' is U8, which has no histogram; accepted: F64, F32, I64");
}

}  // namespace
}  // namespace rubato
