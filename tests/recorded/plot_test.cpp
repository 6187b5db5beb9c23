// Plots as values, and as a person sees them in a terminal.

#include "runs/recorded/plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "base/core/terminal/terminal.hpp"

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

// Up to 10,000 a number has no more digits than with a letter.
TEST(PlotAxis, WritesThousandsOutUpToTen) {
  const PlotAxis axis = axis_across(plot_of({{{5000, 1}}}), 5);
  EXPECT_EQ(axis.text_of(5000), "5000");
  EXPECT_EQ(axis.text_of(1000), "1000");
  const PlotAxis below = axis_across(plot_of({{{9999, 1}}}), 5);
  EXPECT_EQ(below.text_of(8000), "8000");
  const PlotAxis more = axis_across(plot_of({{{10'000, 1}}}), 5);
  EXPECT_EQ(more.text_of(10'000), "10k");
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

TEST(Averaged, IsTheMeanOfEachPart) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), i % 2 == 0 ? 1.0 : 3.0});
  points[10].y = kNan;
  points[11].y = kNan;
  for (int i = 500; i < 600; ++i) points[static_cast<std::size_t>(i)].y = kNan;
  const std::vector<PlotPoint> means = averaged(points, 10);
  ASSERT_EQ(means.size(), 10U);
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (i == 5) {
      EXPECT_TRUE(std::isnan(means[i].y)) << "a gap";
    } else {
      EXPECT_NEAR(means[i].y, 2, 0.03) << i;
    }
  }
  EXPECT_TRUE(averaged(std::span(points).first(40), 10).empty()) << "all of them can be seen";
  EXPECT_TRUE(averaged({}, 10).empty());
}

TEST(MeanCurve, ReachesAsFarAsAllRunsDo) {
  const std::vector<std::vector<PlotPoint>> runs{
      {{10, 1}, {20, 4}, {30, 9}}, {{20, 3}, {40, 8}}, {{30, 5}, {60, 6}, {90, 1}}};
  const Plot::Curve curve = mean_curve("linear", runs);
  EXPECT_EQ(curve.name, "linear");
  EXPECT_THAT(curve.points, ElementsAre(PlotPoint{20, 3}, PlotPoint{40, 6}));
  EXPECT_THAT(curve.band, ElementsAre(PlotRange{1, 5}, PlotRange{4, 8}));
  // One that diverged ends the mean.
  const std::vector<std::vector<PlotPoint>> lost{{{1, 1}, {2, 1}}, {{1, 1}, {2, kNan}}};
  EXPECT_EQ(mean_curve("", lost).points.size(), 1U);
  EXPECT_TRUE(mean_curve("", std::span(runs).first(1)).band.empty());
  EXPECT_TRUE(mean_curve("", {}).points.empty());
}

TEST(MeanCurve, HasRoomForItsBand) {
  Plot plot = plot_of({{{0, 5}, {1, 5}}});
  plot.curves.front().band = {{-7, 9}, {5, 5}};
  const PlotAxis axis = axis_up(plot, 4);
  EXPECT_LE(axis.least, -7);
  EXPECT_GE(axis.most, 9);
}

// Of 100,000 losses the mean is drawn, which two that are far out do not flatten.
TEST(PlotLines, AreTheMeanOfManyPoints) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 100'000; ++i) {
    points.push_back({static_cast<double>(i), i % 2 == 0 ? 0.9 : 1.1});
  }
  points[0].y = 50;
  points[70'000].y = 1e-9;
  const auto lines =
      plot_lines(plot_of({points}), {.columns = 60, .utf8 = false, .colours = false}, 6);
  const auto drawn = std::ranges::count_if(
      lines, [](const std::string& line) { return line.find("****") != std::string::npos; });
  EXPECT_EQ(drawn, 1) << fmt::format("\n{}\n", fmt::join(lines, "\n"));
}

TEST(PlotLines, MarkAPointAlone) {
  const auto lines = plot_lines(plot_of({{{1, 5}, {2, kNan}, {4, 5}, {5, 5}}}),
                                {.columns = 30, .colours = false}, 3);
  EXPECT_EQ(lines[2], "  5┤    ⠤⡧⠄            ⠠⠤⠤⠤⠤⠤");
}

// At any width a number stands below its tick by itself, or not at all.
TEST(PlotLines, HaveNumbersThatTouchNoOther) {
  for (const double most : {3e-5, 1e-4, 4e-4, 0.0125, 7.0, 9999.0, 123'456.0, 9.9e12}) {
    for (int columns = 24; columns <= 80; ++columns) {
      const Plot plot = plot_of({{{0, 1e-7}, {most, 3e-7}}});
      const ViewStyle style{.columns = columns, .utf8 = false, .colours = false};
      const auto lines = plot_lines(plot, style, 4);
      std::istringstream numbers(lines[lines.size() - 2]);
      for (std::string number; numbers >> number;) {
        EXPECT_THAT(number, testing::MatchesRegex("[0-9.]+(e-[0-9]+)?[kMG]?"));
        const bool glued = number.size() > 1 && number.starts_with("0") && number[1] != '.';
        EXPECT_FALSE(glued) << number << " in " << columns << " columns";
        EXPECT_LE(std::ranges::count(number, '.') + std::ranges::count(number, 'e'), 2) << number;
      }
    }
  }
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

// More curves than colours are characters, no two of them the same.
TEST(PlotLines, TellTwentyCurvesApart) {
  const Plot many = plot_of(std::vector<std::vector<PlotPoint>>(20, {{0, 1}, {1, 2}}));
  const std::vector<std::string> lines = plot_lines(many, {.columns = 40}, 5);
  std::set<char> marks;
  for (const std::string& line : std::span(lines).last(20)) {
    const std::size_t at = line.find("m") + 1;
    EXPECT_EQ(line[at], line[at + 1]) << line;
    marks.insert(line[at]);
  }
  EXPECT_EQ(marks.size(), 20U);
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
