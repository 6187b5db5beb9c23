#pragma once

#include <vector>

#include "digit_glyphs.hpp"
#include "digit_stream.hpp"

namespace rubato::digits {

/// A place in an image, in pixels: x to the right, y down, the centre of the first pixel is (0, 0).
struct Place {
  double x = 0;
  double y = 0;
};

/// A straight piece of a stroke.
struct Segment {
  Place from;
  Place to;
};

/// The strokes of `glyph` as one hand would write it once, in an image of `side` x `side` pixels:
/// every point a little off, the whole bent, stretched, slanted, turned, and put down at random
/// around the middle, at least `margin` pixels from the outermost pixels' centres; shrunk when it
/// does not fit so.
[[nodiscard]] std::vector<Segment> handwritten(Glyph glyph, int side, double margin,
                                               DigitStream& random);

}  // namespace rubato::digits
