#include "digit_strokes.hpp"

#include <algorithm>
#include <cstddef>

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

}  // namespace rubato::digits
