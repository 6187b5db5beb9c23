#include "digit_raster.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace rubato::digits {

namespace {

// The same bits on every machine depend on this, besides -ffp-contract=off: sums, products,
// quotients and square roots of IEEE doubles are each rounded to double at once.
static_assert(std::numeric_limits<double>::is_iec559 && FLT_EVAL_METHOD == 0);

// Bounds a value to [0, `most`], without a branch, because its arguments make branches
// unpredictable.
double bounded(double value, double most) {
  const double at_least_0 = value > 0 ? value : 0.0;
  return at_least_0 < most ? at_least_0 : most;
}

// The first and last pixel of [low - reach, high + reach] that lie in the image.
struct Range {
  int first;
  int last;
};
Range pixels_near(double a, double b, double reach, int side) {
  const double low = std::ceil(std::min(a, b) - reach);
  const double high = std::floor(std::max(a, b) + reach);
  return {static_cast<int>(std::max(low, 0.0)), static_cast<int>(std::min(high, side - 1.0))};
}

// Lowers the squared distances of the pixels within `reach` of the segment to those from it.
void approach(const Segment& segment, double reach, int side, std::span<double> squares) {
  const Range columns = pixels_near(segment.from.x, segment.to.x, reach, side);
  const Range rows = pixels_near(segment.from.y, segment.to.y, reach, side);
  const double along_x = segment.to.x - segment.from.x;
  const double along_y = segment.to.y - segment.from.y;
  // A segment of length 0 is a dot: the projection below is then 0 for every pixel.
  const double square_length = std::max(along_x * along_x + along_y * along_y, 1e-12);
  const double along_x_unit = along_x / square_length;
  const double along_y_unit = along_y / square_length;
  for (int row = rows.first; row <= rows.last; ++row) {
    const double y = row - segment.from.y;
    const double y_part = y * along_y_unit;
    double* const line = squares.data() + static_cast<std::ptrdiff_t>(row) * side;
    for (int column = columns.first; column <= columns.last; ++column) {
      const double x = column - segment.from.x;
      const double t = bounded(x * along_x_unit + y_part, 1.0);
      const double off_x = x - t * along_x;
      const double off_y = y - t * along_y;
      const double square = off_x * off_x + off_y * off_y;
      line[column] = square < line[column] ? square : line[column];
    }
  }
}

// Noise from -1 to 1 with a triangular density: each of its two parts has eight bits, so one draw
// serves four pixels.
constexpr std::array<double, 511> kNoise = [] {
  std::array<double, 511> noise{};
  for (int sum = 0; sum < 511; ++sum) noise[static_cast<std::size_t>(sum)] = (sum - 255) / 255.0;
  return noise;
}();
double noise_of(std::uint64_t bits) {
  return kNoise[(bits & 0xffU) + (bits >> 8U & 0xffU)];
}

}  // namespace

void draw(std::span<const Segment> segments, const Pen& pen, int side, DigitStream& random,
          std::span<std::uint8_t> image) {
  const double reach = pen.radius + pen.softness;
  const double outside = reach * reach;
  std::vector<double> squares(image.size(), outside);
  for (const Segment& segment : segments) approach(segment, reach, side, squares);

  std::vector<double> greys(image.size());
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < image.size(); ++i) {
    bits = i % 4 == 0 ? random.bits() : bits >> 16U;
    greys[i] = pen.noise * noise_of(bits);
  }
  for (std::size_t i = 0; i < image.size(); ++i) {
    // Most pixels are background.
    if (squares[i] >= outside) continue;
    // The ink is 1 inside the stroke, 0 outside, and smooth over the edge: 3e^2 - 2e^3.
    const double edge = bounded(0.5 * (reach - std::sqrt(squares[i])) / pen.softness, 1.0);
    greys[i] = pen.ink * (edge * edge * (3.0 - 2.0 * edge)) + greys[i];
  }
  // Values are rounded and then bounded, which is faster than the reverse; negative ones need no
  // better rounding.
  constexpr double kHalf = 0.5;
  std::transform(greys.begin(), greys.end(), image.begin(), [](double grey) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(grey + kHalf), 0, 255));
  });
}

}  // namespace rubato::digits
