#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <rubato/loop/images.hpp>

namespace rubato::digits {

/// The random draws of one image: splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014), started at a state that depends on a seed and a key only.
///
/// Everything is made from integers and from products and sums of doubles that round the same way
/// everywhere, so a stream gives the same bits on every machine.
class DigitStream {
 public:
  /// Distinct keys under one seed start at distinct states.
  DigitStream(std::uint64_t seed, std::uint64_t key) : state_(mixed(mixed(seed + kGamma) + key)) {}

  /// 64 random bits.
  [[nodiscard]] std::uint64_t bits() {
    state_ += kGamma;
    return mixed(state_);
  }

  /// Draws an integer 0 <= k < count, for 1 <= count < 2^32; uniform up to a bias of count / 2^32.
  [[nodiscard]] std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(((bits() >> 32U) * count) >> 32U);
  }

  /// Draws a number uniformly from [low, high).
  [[nodiscard]] double uniform(double low, double high) {
    constexpr double kStep = 0x1p-53;
    return low + (high - low) * (static_cast<double>(bits() >> 11U) * kStep);
  }

  /// Draws a nearly normal number with mean 0 and deviation `deviation`, never beyond 3.5
  /// deviations: the sum of four uniform numbers of 16 bits.
  [[nodiscard]] double bell(double deviation) {
    constexpr std::uint64_t kPart = 0xffff;
    const std::uint64_t draw = bits();
    const std::uint64_t sum =
        (draw & kPart) + (draw >> 16U & kPart) + (draw >> 32U & kPart) + (draw >> 48U & kPart);
    // The sum has mean 2 x 65535 and variance (2^32 - 1) / 3, so deviation 37837.2.
    constexpr double kMean = 131070.0;
    constexpr double kDeviation = 37837.2;
    return (static_cast<double>(sum) - kMean) * (deviation / kDeviation);
  }

 private:
  static constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15;

  // A bijection of 64 bits in which every bit of the input moves about half of the output's.
  static std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111eb;
    return value ^ (value >> 31U);
  }

  std::uint64_t state_;
};

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

/// The pen and the paper of one image.
struct Pen {
  double radius = 1;    ///< pixels, half the width of a stroke where it is half as dark
  double softness = 1;  ///< pixels, half the width of the edge over which the ink fades
  double ink = 255;     ///< grey value of the middle of a stroke, 0 to 255
  double noise = 0;     ///< largest grey value that noise adds or takes away
};

/// Draws the segments into an image of `side` x `side` pixels: the grey value of a pixel depends on
/// the distance from its centre to the nearest segment, to which noise is added, cut off at 0 and
/// 255. Requires that `side` is even.
void draw(std::span<const Segment> segments, const Pen& pen, int side, DigitStream& random,
          std::span<std::uint8_t> image);

}  // namespace rubato::digits

namespace rubato {

/// Renders `count` >= 0 images of handwritten-looking digits, 28 x 28: strokes under a random
/// affine distortion, with random width, blur and noise. Image i depends only on (seed, i): the
/// bits are the same on every machine, with every compiler and number of threads.
///
/// Images 10k to 10k + 9 show every digit once, in a random order. An image takes about 5
/// microseconds of a thread. Uses `threads` >= 1 threads, by default as many as there are CPUs, all
/// of which have ended when it returns.
[[nodiscard]] ImageSet render_digits(std::int64_t count, std::uint64_t seed,
                                     std::optional<int> threads = {});

/// The number of training samples of the built-in data set.
inline constexpr std::int64_t kBuiltinSamples = 12'000;

/// The built-in data set: kBuiltinSamples training and 2,000 test digits from disjoint random
/// streams.
///
/// It is hard enough to distinguish models, and easy enough for a small one: a linear model on the
/// pixels classifies about 90 % of the test digits correctly, the usual two-layer convolutional
/// network for MNIST 98 to 99 % after five epochs (tests/data/digits_hardness_test.cpp).
[[nodiscard]] TrainTestImages builtin_digits(std::optional<int> threads = {});
/// Its test digits alone.
[[nodiscard]] ImageSet builtin_test_digits(std::optional<int> threads = {});

}  // namespace rubato
