#pragma once

#include <cstdint>
#include <span>

#include "digit_stream.hpp"
#include "digit_strokes.hpp"

namespace rubato::digits {

/// The pen and the paper of one image.
struct Pen {
  double radius = 1;    ///< pixels, half the width of a stroke where it is half as dark
  double softness = 1;  ///< pixels, half the width of the edge over which the ink fades
  double ink = 255;     ///< grey value of the middle of a stroke, 0 to 255
  double noise = 0;     ///< largest grey value that noise adds or takes away
};

/// Draws the segments into an image of `side` x `side` pixels: the grey value of a pixel depends on
/// the distance from its centre to the nearest segment. Then adds the noise, cut off at 0 and 255.
void draw(std::span<const Segment> segments, const Pen& pen, int side, DigitStream& random,
          std::span<std::uint8_t> image);

}  // namespace rubato::digits
