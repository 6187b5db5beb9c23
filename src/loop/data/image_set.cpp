#include <algorithm>
#include <cmath>

#include <rubato/loop/images.hpp>

namespace rubato {

namespace {

constexpr double kWhite = 255.0;

}  // namespace

PixelStatistics pixel_statistics(const ImageSet& images) {
  if (images.pixels.empty()) return {};
  // Both sums are exact for all pixels that fit into any memory, so the order of summation does not
  // matter.
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::uint8_t pixel : images.pixels) {
    const std::uint64_t value = pixel;
    sum += value;
    squares += value * value;
  }
  return pixel_statistics(images.pixels.size(), sum, squares);
}

PixelStatistics pixel_statistics(std::uint64_t pixels, std::uint64_t sum, std::uint64_t squares) {
  if (pixels == 0) return {};
  const auto count = static_cast<double>(pixels);
  const double mean = static_cast<double>(sum) / count;
  // Rounding can make the difference negative if all but a few pixels are equal.
  const double variance = std::max(0.0, static_cast<double>(squares) / count - mean * mean);
  return {.mean = mean / kWhite, .deviation = std::sqrt(variance) / kWhite};
}

std::array<float, 256> normalised_pixels(const PixelStatistics& statistics) {
  const double deviation = statistics.deviation > 0 ? statistics.deviation : 1;
  std::array<float, 256> normalised{};
  for (std::size_t value = 0; value < normalised.size(); ++value) {
    normalised[value] =
        static_cast<float>((static_cast<double>(value) / kWhite - statistics.mean) / deviation);
  }
  return normalised;
}

}  // namespace rubato
