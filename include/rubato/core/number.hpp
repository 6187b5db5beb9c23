#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rubato {

/// The whole number that `text` writes in decimal digits. Throws Error, saying what is wrong with
/// the text and what would be accepted, when it is none from `min` to `max`.
[[nodiscard]] std::int64_t parse_whole(std::string_view text, std::int64_t min, std::int64_t max);

/// What parse_whole() accepts, in words: "a whole number from 1 to 8".
[[nodiscard]] std::string whole_range(std::int64_t min, std::int64_t max);

/// Like parse_whole() for the whole range of 64 bits.
[[nodiscard]] std::uint64_t parse_seed(std::string_view text);

/// What numbers without another limit are at most, or from -kLargestReal to it: what is computed
/// with them stays finite.
inline constexpr double kLargestReal = 1e300;

/// Which real numbers an option takes.
struct RealRange {
  double min = 0;
  double max = 0;
  bool includes_min = true;
  bool includes_max = true;
  /// The range in words: "a number from 0 to below 1". kLargestReal goes without saying.
  std::string_view words;

  [[nodiscard]] constexpr bool holds(double value) const {
    return (includes_min ? value >= min : value > min) &&
           (includes_max ? value <= max : value < max);
  }
  /// The words for whoever gave `value`, which does not go without saying beyond kLargestReal.
  [[nodiscard]] std::string accepted_for(double value) const;
};

/// The finite number that `text` writes. Throws Error like parse_whole().
[[nodiscard]] double parse_real(std::string_view text, const RealRange& range);

/// Whether `text` is a number of any kind, in range or not: "-1", "0.5", "1e999".
[[nodiscard]] bool is_number(std::string_view text);

/// `value` as a count; throws Error when it is no whole number from 0 to 2^53. For counts that are
/// kept among real numbers.
[[nodiscard]] std::int64_t count_of(double value);

}  // namespace rubato
