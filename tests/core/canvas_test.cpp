#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/core/terminal/charts.hpp"

namespace rubato {
namespace {

constexpr Pen kPen{Ink::cyan, '*'};
constexpr Pen kOther{Ink::red, 'o'};

TEST(Canvas, HasTwoByFourDotsInACell) {
  Canvas canvas(2, 2, Canvas::Cells::braille);
  canvas.line(0, 0, 1, 1, kPen);
  EXPECT_EQ(canvas.row(0, false), " ⡜");
  EXPECT_EQ(canvas.row(1, false), "⡜");
  Canvas corners(2, 1, Canvas::Cells::braille);
  corners.line(0, 0, 0, 0, kPen);
  corners.line(1, 1, 1, 1, kPen);
  EXPECT_EQ(corners.row(0, false), "⡀⠈");
  Canvas full(1, 1, Canvas::Cells::braille);
  for (const double x : {0.0, 1.0}) full.line(x, 0, x, 1, kPen);
  EXPECT_EQ(full.row(0, false), "⣿");
}

TEST(Canvas, HasTheColoursOfTheLastLines) {
  Canvas canvas(3, 1, Canvas::Cells::braille);
  canvas.line(0, 0, 1, 0, kPen);
  canvas.line(1, 1, 1, 1, kOther);
  EXPECT_EQ(canvas.row(0, true), "\x1b[36m⣀⣀\x1b[0m\x1b[31m⣈\x1b[0m");
  EXPECT_EQ(canvas.row(0, false), "⣀⣀⣈");
}

TEST(Canvas, MayBeOfCharacters) {
  Canvas canvas(3, 2, Canvas::Cells::marks);
  canvas.line(0, 0, 1, 0, kPen);
  canvas.line(1, 1, 1, 1, kOther);
  EXPECT_EQ(canvas.row(0, false), "  o");
  EXPECT_EQ(canvas.row(1, false), "***");
}

TEST(Canvas, CutsOffWhatIsOutside) {
  Canvas canvas(2, 1, Canvas::Cells::marks);
  canvas.line(0.5, -1e300, 0.5, 1e300, kPen);
  canvas.line(2, 2, 1e9, 2, kPen);
  EXPECT_EQ(canvas.row(0, false), " *");
}

}  // namespace
}  // namespace rubato
