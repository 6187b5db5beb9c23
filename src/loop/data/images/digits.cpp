// An image takes three steps: the points of a glyph (digit_glyphs.cpp) are displaced at random and
// joined by Catmull-Rom curves, a random polynomial bend and an affine map place the strokes on the
// page, and the raster turns the distance of each pixel to the nearest stroke into a grey value.
// All random draws of an image come from one stream in a fixed order, so a draw that is added, left
// out or moved changes the data set, and with it every result that was measured on it. The
// arithmetic is limited to sums, products, quotients and square roots of doubles, because sines and
// powers differ between C libraries.

#include "digits.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <rubato/base/machine.hpp>

#include "base/core/check.hpp"
#include "base/machine/instruction_set.hpp"

namespace rubato::digits {

namespace {

// These numbers say how much handwritings differ. Together with the raster's numbers they determine
// how hard the data set is: tests/data/digits_hardness_test.cpp keeps it between the abilities of a
// linear model and a small convolutional network.
constexpr double kJitter = 2.6;       // of a point, in hundredths of the height
constexpr double kBend = 0.06;        // coefficients of the polynomial that bends the whole
constexpr double kTurn = 0.07;        // tangent of half the angle; 0.07 is 8 degrees
constexpr double kSlant = 0.16;       // of the height, to the right per unit up
constexpr double kUpright = 0.1;      // the mean slant: most hands lean to the right
constexpr double kHeightLow = 17.0;   // pixels
constexpr double kHeightHigh = 21.0;  // pixels
constexpr double kAspectLow = 0.75;   // width over height, relative to the table
constexpr double kAspectHigh = 1.15;  //
constexpr double kFarthest = 1.5;     // pixels from the middle of the image
constexpr int kPiecesPerCurve = 5;    // straight pieces between two points of the table

constexpr Place operator+(Place a, Place b) {
  return {a.x + b.x, a.y + b.y};
}
constexpr Place operator-(Place a, Place b) {
  return {a.x - b.x, a.y - b.y};
}
constexpr Place operator*(double factor, Place a) {
  return {factor * a.x, factor * a.y};
}

// The Catmull-Rom curve from b to c at 0 <= t <= 1, with neighbours a and d. If b and a are the
// same point it leaves b straight, so a point given twice is a corner.
Place curve(Place a, Place b, Place c, Place d, double t) {
  const Place cubic = 3.0 * (b - c) + d - a;
  const Place square = 2.0 * a - 5.0 * b + 4.0 * c - d;
  return b + 0.5 * t * (c - a + t * (square + t * cubic));
}

// Maps the glyph table to the page as one person writes, except for the place on the page.
class Hand {
 public:
  explicit Hand(DigitStream& random) {
    for (Place* bend : {&bend_yy_, &bend_xy_, &bend_yyy_}) {
      *bend = {random.bell(kBend), random.bell(kBend)};
    }
    const double height = random.uniform(kHeightLow, kHeightHigh);
    const double width = height * random.uniform(kAspectLow, kAspectHigh);
    const double slant = kUpright + random.bell(kSlant);
    // A rotation without a sine: (1 - t^2, 2t) / (1 + t^2) lies on the unit circle for every t, and
    // has the same bits everywhere.
    const double t = random.bell(kTurn);
    const double cosine = (1.0 - t * t) / (1.0 + t * t);
    const double sine = 2.0 * t / (1.0 + t * t);
    // The axes combine rotation x slant x stretch.
    x_axis_ = {width * cosine, width * sine};
    y_axis_ = {-height * (slant * cosine + sine), height * (cosine - slant * sine)};
  }

  // Maps `point`, in hundredths of the height, to pixels from the middle of the digit.
  [[nodiscard]] Place operator()(Place point) const {
    const double u = 0.01 * point.x - 0.5;
    const double v = 0.01 * point.y - 0.5;
    const double vv = 4.0 * v * v;  // 0 to 1, as 4uv is -1 to 1
    const Place bent =
        Place{u, v} + vv * bend_yy_ + 4.0 * u * v * bend_xy_ + 2.0 * v * vv * bend_yyy_;
    return bent.x * x_axis_ + bent.y * y_axis_;
  }

 private:
  Place bend_yy_, bend_xy_, bend_yyy_;
  Place x_axis_, y_axis_;
};

// The points of a glyph, each slightly displaced. A point that repeats its predecessor stays with
// it.
std::vector<Place> jittered(Glyph glyph, DigitStream& random) {
  std::vector<Place> points;
  points.reserve(glyph.size());
  for (std::size_t i = 0; i < glyph.size(); ++i) {
    if (i > 0 && glyph[i] == glyph[i - 1]) {
      points.push_back(points.back());
    } else {
      const double x = glyph[i].x + random.bell(kJitter);
      const double y = glyph[i].y + random.bell(kJitter);
      points.push_back({x, y});
    }
  }
  return points;
}

// Appends the segments of a stroke through `points`, as written by `hand`.
void write_stroke(std::span<const Place> points, const Hand& hand, std::vector<Segment>& segments) {
  Place last = hand(points.front());
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const Place before = points[i == 0 ? 0 : i - 1];
    const Place after = points[std::min(i + 2, points.size() - 1)];
    for (int piece = 1; piece <= kPiecesPerCurve; ++piece) {
      const double t = static_cast<double>(piece) / kPiecesPerCurve;
      const Place next = hand(curve(before, points[i], points[i + 1], after, t));
      segments.push_back({last, next});
      last = next;
    }
  }
}

// A random shift of the interval [low, high] to a place around the middle of [0, last], at least
// `margin` from its ends. The interval must leave that room.
double shift(double low, double high, double last, double margin, DigitStream& random) {
  const double room = 0.5 * (last - (high - low)) - margin;
  const double reach = std::clamp(room, 0.0, kFarthest);
  return 0.5 * (last - (low + high)) + random.uniform(-reach, reach);
}

void place_on_page(std::vector<Segment>& segments, int side, double margin, DigitStream& random) {
  Place low = segments.front().from;
  Place high = low;
  for (const Segment& segment : segments) {
    for (const Place& end : {segment.from, segment.to}) {
      low = {std::min(low.x, end.x), std::min(low.y, end.y)};
      high = {std::max(high.x, end.x), std::max(high.y, end.y)};
    }
  }
  const double last = side - 1;
  const double largest = std::max(high.x - low.x, high.y - low.y);
  const double scale = std::min(1.0, (last - 2.0 * margin) / largest);
  const double x = shift(scale * low.x, scale * high.x, last, margin, random);
  const double y = shift(scale * low.y, scale * high.y, last, margin, random);
  for (Segment& segment : segments) {
    segment.from = scale * segment.from + Place{x, y};
    segment.to = scale * segment.to + Place{x, y};
  }
}

}  // namespace

std::vector<Segment> handwritten(Glyph glyph, int side, double margin, DigitStream& random) {
  const Hand hand(random);
  const std::vector<Place> points = jittered(glyph, random);
  std::vector<Segment> segments;
  segments.reserve(glyph.size() * kPiecesPerCurve);
  for (auto begin = glyph.begin(); begin < glyph.end();) {
    const auto end = std::find(begin, glyph.end(), kPenUp);
    const auto first = static_cast<std::size_t>(begin - glyph.begin());
    const auto length = static_cast<std::size_t>(end - begin);
    write_stroke(std::span(points).subspan(first, length), hand, segments);
    begin = end == glyph.end() ? end : end + 1;
  }
  place_on_page(segments, side, margin, random);
  return segments;
}

namespace {

// The same bits on every machine depend on this, besides -ffp-contract=off: sums, products,
// quotients and square roots of IEEE doubles are each rounded to double at once.
static_assert(std::numeric_limits<double>::is_iec559 && FLT_EVAL_METHOD == 0);

// Some neighbouring pixels of a row, computed at once. Kept in memory as doubles, without
// alignment. Four lanes would take a sixth less with AVX2, but GCC computes vectors that are wider
// than the CPU's, as in SSE and NEON, lane by lane, in three times the time.
constexpr int kLanes = 2;
using Lanes [[gnu::vector_size(kLanes * sizeof(double))]] = double;
constexpr Lanes kLaneNumbers{0, 1};

// Bounds a value to [0, 1], without a branch, because its arguments make branches unpredictable.
[[gnu::always_inline]] inline void bound(Lanes& value) {
  value = value > 0.0 ? value : Lanes{};
  value = value < 1.0 ? value : Lanes{} + 1.0;
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

// The squared distances of an image's pixels to a stroke.
class Raster {
 public:
  Raster(int side, double reach)
      : side_(side),
        reach_(reach),
        squares_(static_cast<std::size_t>(side * side), reach * reach) {}

  // Lowers the squared distances of the pixels within `reach` of the segment to those from it. The
  // vectors also have pixels beyond that reach, whose distances are not below it but for rounding,
  // which makes no ink.
  [[gnu::always_inline]] void approach(const Segment& segment) {
    const Range columns = pixels_near(segment.from.x, segment.to.x, reach_, side_);
    const Range rows = pixels_near(segment.from.y, segment.to.y, reach_, side_);
    const double along_x = segment.to.x - segment.from.x;
    const double along_y = segment.to.y - segment.from.y;
    // A segment of length 0 is a dot: the projection below is then 0 for every pixel.
    const double square_length = std::max(along_x * along_x + along_y * along_y, 1e-12);
    const double along_x_unit = along_x / square_length;
    const double along_y_unit = along_y / square_length;
    for (int column = columns.first / kLanes * kLanes; column <= columns.last; column += kLanes) {
      const Lanes x = (kLaneNumbers + static_cast<double>(column)) - segment.from.x;
      const Lanes x_part = x * along_x_unit;
      double* line = squares_.data() + (rows.first * side_ + column);
      for (int row = rows.first; row <= rows.last; ++row, line += side_) {
        const double y = row - segment.from.y;
        Lanes t = x_part + y * along_y_unit;
        bound(t);
        const Lanes off_x = x - t * along_x;
        const Lanes off_y = y - t * along_y;
        const Lanes square = off_x * off_x + off_y * off_y;
        Lanes least;
        std::memcpy(&least, line, sizeof(Lanes));
        least = square < least ? square : least;
        std::memcpy(line, &least, sizeof(Lanes));
      }
    }
  }

  // Adds the ink to the greys of the noise.
  [[gnu::always_inline]] void add_ink(const Pen& pen, std::vector<double>& greys) const {
    for (std::size_t i = 0; i < greys.size(); i += kLanes) {
      Lanes square;
      std::memcpy(&square, &squares_[i], sizeof(Lanes));
      const auto inside = square < reach_ * reach_;
      // Most pixels are background.
      if ((inside[0] | inside[1]) == 0) continue;
      Lanes distance;
      for (int lane = 0; lane < kLanes; ++lane) distance[lane] = std::sqrt(square[lane]);
      // The ink is 1 inside the stroke, 0 outside, and smooth over the edge: 3e^2 - 2e^3.
      Lanes edge = 0.5 * (reach_ - distance) / pen.softness;
      bound(edge);
      Lanes grey;
      std::memcpy(&grey, &greys[i], sizeof(Lanes));
      grey = inside ? pen.ink * (edge * edge * (3.0 - 2.0 * edge)) + grey : grey;
      std::memcpy(&greys[i], &grey, sizeof(Lanes));
    }
  }

 private:
  int side_;
  double reach_;
  std::vector<double> squares_;
};

// Noise from -1 to 1 with a triangular density: each of its two parts has eight bits, so one draw
// serves four pixels.
constexpr std::array<double, 511> kNoise = [] {
  std::array<double, 511> noise{};
  for (int sum = 0; sum < 511; ++sum) noise[static_cast<std::size_t>(sum)] = (sum - 255) / 255.0;
  return noise;
}();

}  // namespace

void draw(std::span<const Segment> segments, const Pen& pen, int side, DigitStream& random,
          std::span<std::uint8_t> image) {
  RUBATO_CHECK(side % kLanes == 0, "rows are whole vectors");
  std::vector<double> greys(image.size());
  for (std::size_t i = 0; i < image.size(); i += 4) {
    constexpr std::uint64_t kBytes = 0x00ff'00ff'00ff'00ff;
    const std::uint64_t bits = random.bits();
    const std::uint64_t sums = (bits & kBytes) + (bits >> 8U & kBytes);
    for (std::size_t j = 0; j < 4; ++j) {
      greys[i + j] = pen.noise * kNoise[sums >> 16U * j & 0xffffU];
    }
  }
  Raster raster(side, pen.radius + pen.softness);
  with_vectors([&]() __attribute__((always_inline)) {
    for (const Segment& segment : segments) raster.approach(segment);
    raster.add_ink(pen, greys);
  });
  // Values are rounded and then bounded, which is faster than the reverse; negative ones need no
  // better rounding.
  constexpr double kHalf = 0.5;
  std::transform(greys.begin(), greys.end(), image.begin(), [](double grey) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(grey + kHalf), 0, 255));
  });
}

}  // namespace rubato::digits

namespace rubato {

namespace {

using digits::DigitStream;

constexpr int kSide = 28;
constexpr std::int64_t kDigitCount = 10;

constexpr std::int64_t kTestCount = 2'000;
constexpr std::uint64_t kTrainSeed = 0x7275'6261'746f'0001;  // "rubato", 1
constexpr std::uint64_t kTestSeed = 0x7275'6261'746f'0002;

// Every ten consecutive images show every digit once, in a random order: the classes are balanced,
// and yet the label of an image depends only on the seed and its index.
std::uint8_t label_of(std::int64_t i, std::uint64_t seed) {
  // The highest bit distinguishes the streams of the tens from those of the images.
  constexpr std::uint64_t kTens = std::uint64_t{1} << 63U;
  DigitStream random(seed, kTens | static_cast<std::uint64_t>(i / kDigitCount));
  std::array<std::uint8_t, kDigitCount> order{};
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  for (std::uint32_t left = kDigitCount; left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order[static_cast<std::size_t>(i % kDigitCount)];
}

// A thread renders this many images at a time, in two milliseconds; starting it takes less.
constexpr std::size_t kPart = 500;

void render(std::uint8_t label, DigitStream random, std::span<std::uint8_t> image) {
  const auto ways = digits::glyphs(label);
  const digits::Glyph glyph = ways[random.below(static_cast<std::uint32_t>(ways.size()))];
  const digits::Pen pen{.radius = random.uniform(0.7, 1.6),
                        .softness = random.uniform(0.6, 1.1),
                        .ink = random.uniform(190.0, 255.0),
                        .noise = random.uniform(0.0, 20.0)};
  const auto strokes = digits::handwritten(glyph, kSide, pen.radius + 0.5, random);
  digits::draw(strokes, pen, kSide, random, image);
}

}  // namespace

ImageSet render_digits(std::int64_t count, std::uint64_t seed, std::optional<int> threads) {
  RUBATO_CHECK(count >= 0, "a number of images");
  constexpr auto kPixels = static_cast<std::size_t>(kSide) * kSide;
  const auto size = static_cast<std::size_t>(count);
  ImageSet set{.count = count,
               .height = kSide,
               .width = kSide,
               .pixels = std::vector<std::uint8_t>(size * kPixels),
               .labels = std::vector<std::uint8_t>(size)};
  // Each image is a function of its index, so threads can render parts of them.
  std::atomic<std::size_t> next = 0;
  const auto render_parts = [&] {
    for (std::size_t begin = 0; (begin = next.fetch_add(kPart)) < size;) {
      for (std::size_t i = begin; i < std::min(begin + kPart, size); ++i) {
        set.labels[i] = label_of(static_cast<std::int64_t>(i), seed);
        render(set.labels[i], DigitStream(seed, i),
               std::span(set.pixels).subspan(i * kPixels, kPixels));
      }
    }
  };
  const auto others =
      static_cast<std::size_t>(std::max(1, threads ? *threads : cpus().usable())) - 1;
  {
    std::vector<std::jthread> joined;
    while (joined.size() < std::min(size / kPart, others)) joined.emplace_back(render_parts);
    render_parts();
  }
  return set;
}

ImageSet builtin_test_digits(std::optional<int> threads) {
  return render_digits(kTestCount, kTestSeed, threads);
}

TrainTestImages builtin_digits(std::optional<int> threads) {
  return {.train = render_digits(kBuiltinSamples, kTrainSeed, threads),
          .test = builtin_test_digits(threads)};
}

}  // namespace rubato
