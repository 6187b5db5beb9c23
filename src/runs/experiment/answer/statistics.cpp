#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/core/check.hpp"

namespace rubato {

namespace {

double largest_of(std::span<const double> numbers) {
  double largest = 0;
  for (const double x : numbers) largest = std::max(largest, std::abs(x));
  return largest;
}

// The estimate of numbers that were computed from some of this magnitude.
Estimate estimate_from(double magnitude, std::span<const double> numbers) {
  RUBATO_CHECK(!numbers.empty(), "the mean of no numbers is undefined");
  Estimate result{.count = std::ssize(numbers)};
  const auto count = static_cast<double>(numbers.size());
  result.mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  if (numbers.size() < 2) return result;
  // Numbers that differ by rounding alone are equal: 95.1 - 93.4 and 94.3 - 92.6 are 1.7.
  constexpr double kRounding = 16 * std::numeric_limits<double>::epsilon();
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  if (*most - *least <= kRounding * magnitude) {
    result.mean = *least;
  } else {
    double squares = 0;
    for (const double x : numbers) squares += (x - result.mean) * (x - result.mean);
    result.deviation = std::sqrt(squares / (count - 1));
  }
  result.half_width =
      student_critical(kLevel, result.count - 1) * result.deviation / std::sqrt(count);
  return result;
}

}  // namespace

Estimate estimate(std::span<const double> numbers) {
  return estimate_from(largest_of(numbers), numbers);
}

PairedDifference paired_difference(std::span<const double> one, std::span<const double> other) {
  RUBATO_CHECK(one.size() == other.size(), "paired samples have the same length");
  std::vector<double> differences(one.size());
  std::transform(one.begin(), one.end(), other.begin(), differences.begin(), std::minus<>());
  PairedDifference result{
      .difference = estimate_from(std::max(largest_of(one), largest_of(other)), differences)};
  Estimate& difference = result.difference;
  if (difference.count < 2) return result;
  if (difference.deviation == 0) {
    // Without a deviation the test divides by 0. Few seeds and a coarse accuracy give equal
    // differences by chance, so they prove nothing.
    if (difference.mean == 0) {
      result.p = 1;
    } else {
      difference.half_width.reset();
    }
    return result;
  }
  const double t =
      difference.mean / (difference.deviation / std::sqrt(static_cast<double>(difference.count)));
  result.p = student_two_sided(t, difference.count - 1);
  return result;
}

std::optional<MarginTest> margin_test(const Estimate& deficit, double margin) {
  RUBATO_CHECK(deficit.count >= 1 && margin > 0, "a deficit and a margin above 0 are compared");
  if (deficit.count < 2 || deficit.deviation == 0) return std::nullopt;
  MarginTest test{.bound = deficit.mean, .pairs = pairs_needed(deficit.deviation, margin)};
  const double error = deficit.deviation / std::sqrt(static_cast<double>(deficit.count));
  // The level is that of a two-sided interval, which leaves half of it on each side.
  test.bound += student_critical(2 * kLevel, deficit.count - 1) * error;
  test.p = student_upper((margin - deficit.mean) / error, deficit.count - 1);
  return test;
}

std::int64_t pairs_needed(double deviation, double margin) {
  constexpr double kQuantiles = 2.49;
  const double root = kQuantiles * deviation / margin;
  const double pairs = std::ceil(root * root);
  if (!(pairs < static_cast<double>(kMostPairs))) return kMostPairs;
  return std::max<std::int64_t>(2, static_cast<std::int64_t>(pairs));
}

double interquartile_mean(std::vector<double> numbers) {
  RUBATO_CHECK(!numbers.empty(), "the mean of no numbers is undefined");
  std::sort(numbers.begin(), numbers.end());
  const auto left_out = static_cast<std::ptrdiff_t>(numbers.size() / 4);
  const double sum = std::accumulate(numbers.begin() + left_out, numbers.end() - left_out, 0.0);
  return sum / static_cast<double>(std::ssize(numbers) - 2 * left_out);
}

Interval middle_interval(std::vector<double> numbers) {
  RUBATO_CHECK(!numbers.empty(), "no numbers have no middle");
  std::sort(numbers.begin(), numbers.end());
  const std::size_t left_out = numbers.size() / 40;
  return {.low = numbers[left_out], .high = numbers[numbers.size() - 1 - left_out]};
}

std::vector<double> ranks_of(std::span<const double> numbers) {
  std::vector<double> ranks;
  for (const double one : numbers) {
    const auto greater =
        std::count_if(numbers.begin(), numbers.end(), [&](double other) { return other > one; });
    const auto equal = std::count(numbers.begin(), numbers.end(), one);
    ranks.push_back(static_cast<double>(greater) + static_cast<double>(equal + 1) / 2);
  }
  return ranks;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(1.0, left * p[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

std::optional<double> median(std::vector<double> numbers, std::int64_t missing) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t count = numbers.size() + static_cast<std::size_t>(missing);
  if (count == 0 || count / 2 >= numbers.size()) return std::nullopt;
  const double upper = numbers[count / 2];
  return count % 2 == 1 ? upper : (numbers[count / 2 - 1] + upper) / 2;
}

}  // namespace rubato
