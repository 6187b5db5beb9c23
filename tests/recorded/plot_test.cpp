// Plots as values, and as a person sees them in a terminal.

#include "runs/recorded/plot/plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "base/core/terminal/paint.hpp"
#include "runs/recorded/plot/plot_lines.hpp"

namespace rubato {
namespace {

using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Plot plot_of(std::vector<std::vector<PlotPoint>> curves) {
  Plot plot{.across = "samples", .up = "test_accuracy, %", .curves = {}};
  for (std::vector<PlotPoint>& points : curves) {
    plot.curves.push_back(
        {.name = fmt::format("run-{}", plot.curves.size() + 1), .points = std::move(points)});
  }
  return plot;
}

// Two runs that learn, the second slower.
Plot learning() {
  std::vector<std::vector<PlotPoint>> curves(2);
  for (int i = 1; i <= 60; ++i) {
    curves[0].push_back({i * 1000.0, 98 - 30 * std::exp(-i / 10.0)});
    curves[1].push_back({i * 1000.0, 96 - 40 * std::exp(-i / 20.0)});
  }
  return plot_of(std::move(curves));
}

std::string text_of(const Plot& plot, const ViewStyle& style, int rows) {
  return fmt::format("\n{}\n", fmt::join(plot_lines(plot, style, rows), "\n"));
}

TEST(PlotAxis, GoesFromTickToTick) {
  const PlotAxis axis = axis_up(plot_of({{{0, 0.13}, {1, 0.87}}}), 5);
  EXPECT_DOUBLE_EQ(axis.least, 0);
  EXPECT_DOUBLE_EQ(axis.most, 1);
  EXPECT_EQ(axis.ticks.size(), 6U);
  EXPECT_EQ(axis.text_of(axis.ticks[3]), "0.6");
}

TEST(PlotAxis, BeginsAtZeroAcross) {
  const PlotAxis axis = axis_across(plot_of({{{500, 1}, {12'300, 1}}}), 6);
  EXPECT_EQ(axis.least, 0);
  EXPECT_EQ(axis.most, 12'300);
  EXPECT_THAT(axis.ticks, ElementsAre(0, 5000, 10'000));
  EXPECT_EQ(axis.text_of(0), "0");
  EXPECT_EQ(axis.text_of(5000), "5k");
  const PlotAxis hours = axis_across(plot_of({{{2.5, 1}}}), 5);
  EXPECT_THAT(hours.ticks, ElementsAre(0, 0.5, 1, 1.5, 2, 2.5));
}

TEST(PlotAxis, HasRoomWhereAllIsTheSame) {
  const PlotAxis same = axis_up(plot_of({{{0, 5}, {1, 5}}}), 4);
  EXPECT_LT(same.least, 5);
  EXPECT_GT(same.most, 5);
  const PlotAxis zero = axis_up(plot_of({{{0, 0}}}), 4);
  EXPECT_LT(zero.least, zero.most);
  const PlotAxis none = axis_up(plot_of({{{0, kNan}}}), 4);
  EXPECT_LT(none.least, none.most);
  EXPECT_EQ(axis_across(plot_of({{}}), 4).most, 1);
}

TEST(Decimated, KeepsExtremesAndGaps) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({static_cast<double>(i), std::sin(i / 5e3)});
  points[12'345].y = 9;
  points[54'321].y = -9;
  points[77'777].y = kNan;
  const std::vector<PlotPoint> kept = decimated(points, 100);
  EXPECT_LE(kept.size(), 401U);
  EXPECT_GE(kept.size(), 200U);
  EXPECT_THAT(kept, testing::Contains(points[12'345]));
  EXPECT_THAT(kept, testing::Contains(points[54'321]));
  EXPECT_EQ(kept.front(), points.front());
  EXPECT_EQ(kept.back(), points.back());
  EXPECT_EQ(std::ranges::count_if(kept, [](const PlotPoint& p) { return std::isnan(p.y); }), 1);
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &PlotPoint::x));
}

TEST(Decimated, LeavesAFewAsTheyAre) {
  const std::vector<PlotPoint> few{{0, 1}, {1, kNan}, {2, 3}};
  EXPECT_EQ(decimated(few, 100).size(), 3U);
  EXPECT_EQ(decimated({}, 100).size(), 0U);
  // All at the same place.
  const std::vector<PlotPoint> same(1000, {1, 2});
  EXPECT_EQ(decimated(same, 10).size(), 2U);
}

TEST(PlotLines, AreBrailleOnATerminal) {
  Plot one = learning();
  one.curves.pop_back();
  EXPECT_EQ(text_of(one, {.columns = 60, .colours = false}, 10), R"(
test_accuracy, %
100┤                                  ⢀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀
   │                   ⣀⣀⡠⠤⠔⠒⠒⠒⠚⠉⠉⠉⠉⠉⠉⠁
   │             ⢀⡠⠤⠒⠊⠉
 90┤          ⢀⠤⠚⠁
   │       ⢀⠤⠊⠁
   │      ⡠⠊
 80┤    ⡠⠎
   │  ⢀⡰⠁
   │ ⢀⡜
 70┤ ⠎
   └┬─────────────────┬─────────────────┬─────────────────┬
    0                20k               40k              60k
                                                    samples
)");
}

TEST(PlotLines, AreMarksWhereThereAreNoColours) {
  EXPECT_EQ(text_of(learning(), {.columns = 50, .colours = false}, 9), R"(
test_accuracy, %
100┤               *****************************+
   │        ********      +++++++++++++++++++++++
   │    ****      +++++++++
 80┤ ***    ++++++
   │**   ++++
 60┤ ++++
   │++
   │
 40┤
   └┬──────────────┬─────────────┬──────────────┬
    0             20k           40k           60k
                                          samples
    ** run-1
    ++ run-2
)");
}

TEST(PlotLines, AreAsciiWhereTheLocaleIs) {
  EXPECT_EQ(text_of(learning(), {.columns = 40, .utf8 = false, .colours = false}, 7), R"(
test_accuracy, %
100+         ******************++++++++
   |    ******   +++++++++++++++
 80+ ****  +++++++
   |** +++++
 60+++++
   |
 40+
   ++---------------------------+------
    0                          50k
                                samples
    ** run-1
    ++ run-2
)");
}

TEST(PlotLines, HaveAColourForEachCurve) {
  const std::string text = text_of(learning(), {.columns = 80}, 10);
  EXPECT_THAT(text, testing::HasSubstr("\x1b[36m━━\x1b[0m run-1\n"));
  EXPECT_THAT(text, testing::HasSubstr("\x1b[33m━━\x1b[0m run-2\n"));
}

TEST(PlotLines, HaveGaps) {
  const Plot plot = plot_of({{{0, 1}, {1, 1}, {2, kNan}, {9, 1}, {10, 1}}});
  const auto lines = plot_lines(plot, {.columns = 32, .utf8 = false, .colours = false}, 3);
  EXPECT_THAT(lines[2], testing::EndsWith("+***                     ***"));
}

TEST(PlotLines, FitAnyTerminal) {
  Plot plot = learning();
  plot.curves[0].points.push_back({1e12, 1e-12});
  for (int columns = 24; columns <= 210; ++columns) {
    const auto lines = plot_lines(plot, {.columns = columns}, 8);
    for (std::size_t i = 0; i + 2 < lines.size(); ++i) {
      EXPECT_LE(painted_width(lines[i]), static_cast<std::size_t>(columns)) << lines[i];
    }
  }
}

}  // namespace
}  // namespace rubato
