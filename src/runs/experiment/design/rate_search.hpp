#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "design.hpp"

namespace rubato {

/// A value of the option that is tuned, and what its runs have come to.
struct Tried {
  std::string value;
  /// The mean of the final values, negative for losses, so that more is better. Empty if a run has
  /// no final value.
  std::optional<double> score{};
  /// Whether a run is lost (is_lost()), which is worse than any score.
  bool is_lost = false;
};

/// The values to be tried next, given all that were tried; empty when the best has been found or
/// further runs are not worth it. It depends on its arguments alone, so that a search that was
/// killed goes on as it would have.
///
/// A search (Tuning::is_search()) is for a learning rate. Its rates are 10^(k/4) with two
/// significant digits, such as 0.1, 0.18, 0.32, 0.56 and 1; every second one, a factor of 3.2, is
/// coarse. It begins with the one nearest to `start` and its coarse neighbours, goes on beyond the
/// best until that has a worse neighbour on both sides, and ends with the two rates between them.
/// While every rate is lost it goes down, and also up if the highest was lost without diverging. It
/// gives up after kMostUntrained coarse rates of which none is better than another, and after
/// kMostCoarse.
///
/// A list that is not closed grows where its best value is the smallest or the largest and better
/// than the one beside it: by the factor between these two of the list, at most kMostGrown times.
/// This is for positive values of options whose range has no upper limit.
[[nodiscard]] std::vector<std::string> next_values(const Tuning& tuning, double start,
                                                   std::span<const Tried> tried);
inline constexpr std::size_t kMostUntrained = 12;
inline constexpr std::size_t kMostCoarse = 24;
inline constexpr std::size_t kMostGrown = 6;
/// The fewest values that a search tries.
inline constexpr std::int64_t kFewestTried = 5;

/// Index of the best value: with numbers of equal scores beside each other, the one in their
/// middle, otherwise the first one. Lost values count only if all are lost. Empty if none has a
/// score.
[[nodiscard]] std::optional<std::size_t> best_of(std::span<const Tried> tried);

/// Indices of the values in ascending order if all are numbers, otherwise in their own order.
[[nodiscard]] std::vector<std::size_t> ascending(std::span<const Tried> tried);

}  // namespace rubato
