#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/optim/flat_optimizer.hpp>

namespace rubato {

/// The elements of a parameter array from the end of the range before (or from 0) to `end`, and
/// what they are updated with.
template <class Coefficients>
struct CoefficientRange {
  std::size_t end = 0;
  Coefficients coefficients;
};

/// Appends a tensor's range, or makes the last one longer where nothing differs.
template <class Range, class Coefficients>
void append_range(std::vector<Range>& ranges, std::size_t end, const Coefficients& coefficients) {
  if (!ranges.empty() && ranges.back().coefficients == coefficients) {
    ranges.back().end = end;
  } else {
    ranges.push_back({.end = end, .coefficients = coefficients});
  }
}

/// Throws Error unless the update is of that many parameters, and has a gradient for each.
template <class T>
void require_size(const Update<T>& update, std::size_t size) {
  if (size == update.parameters.size() && update.gradient_sum.size() >= size) return;
  throw Error(
      fmt::format("an update of {} parameters has {} gradients, and the layout {} values; "
                  "accepted: as many of each",
                  update.parameters.size(), update.gradient_sum.size(), size));
}

/// Calls kernel(begin, end, coefficients) for pieces that together are all parameters, each within
/// one range, shared out over the threads. The ranges cover all parameters.
template <class T, class Coefficients, class Kernel>
void for_each_piece(const Update<T>& update, std::span<const CoefficientRange<Coefficients>> ranges,
                    Workers& workers, const Kernel& kernel) {
  workers.for_each_range(update.parameters.size(), [&](std::size_t begin, std::size_t end) {
    auto range = std::partition_point(ranges.begin(), ranges.end(),
                                      [begin](const auto& of) { return of.end <= begin; });
    for (std::size_t at = begin; at < end; ++range) {
      const std::size_t piece_end = std::min(end, range->end);
      kernel(at, piece_end, range->coefficients);
      at = piece_end;
    }
  });
}

}  // namespace rubato
