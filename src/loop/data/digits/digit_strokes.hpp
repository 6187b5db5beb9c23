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

/// Returns the strokes of `glyph` as one person might write it, in an image of `side` x `side`
/// pixels: every point is slightly displaced, and the whole is bent, stretched, slanted, turned,
/// and placed at random around the middle, at least `margin` pixels from the outermost pixels'
/// centres. It is shrunk if it does not fit.
[[nodiscard]] std::vector<Segment> handwritten(Glyph glyph, int side, double margin,
                                               DigitStream& random);

}  // namespace rubato::digits
