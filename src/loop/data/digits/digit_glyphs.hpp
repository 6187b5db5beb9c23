#pragma once

#include <cstdint>
#include <span>

namespace rubato::digits {

/// A place the pen passes through, in hundredths of a digit's height: x to the right, y down. A
/// digit spans about 0 to 100 in y and is centred at (50, 50).
struct PenPoint {
  std::int8_t x;
  std::int8_t y;
  friend constexpr bool operator==(PenPoint, PenPoint) = default;
};

/// Stands between two strokes of a glyph, where the pen is lifted.
inline constexpr PenPoint kPenUp{-1, -1};

/// One way to write a digit: the points in the order of writing, strokes separated by kPenUp. The
/// pen follows a smooth curve through the points of a stroke; a point given twice is a corner.
using Glyph = std::span<const PenPoint>;

/// The ways to write `digit`, 0 <= digit <= 9; at least one.
[[nodiscard]] std::span<const Glyph> glyphs(int digit);

}  // namespace rubato::digits
