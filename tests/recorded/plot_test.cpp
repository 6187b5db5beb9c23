// Plots as values, and as scripts for gnuplot.

#include "runs/recorded/plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Plot plot_of(std::vector<std::vector<PlotPoint>> curves) {
  Plot plot{.across = "samples", .up = "test_accuracy, %", .curves = {}};
  for (std::vector<PlotPoint>& points : curves) {
    plot.curves.push_back(
        {.name = fmt::format("run-{}", plot.curves.size() + 1), .points = std::move(points)});
  }
  return plot;
}

TEST(Thinned, HasTheMeanAndTheRangeOfEachPart) {
  Plot::Curve many{.name = "many"};
  for (int i = 0; i < 1000; ++i) many.points.push_back({1.0 * i, i % 2 == 0 ? 1.0 : 3.0});
  many.points[350].y = 9;
  many.points[10].y = kNan;
  for (std::size_t i = 500; i < 600; ++i) many.points[i].y = kNan;
  const Plot::Curve thin = thinned(many, 10);
  EXPECT_EQ(thin.name, "many");
  ASSERT_EQ(thin.points.size(), 10U);
  ASSERT_EQ(thin.band.size(), 10U);
  EXPECT_DOUBLE_EQ(thin.points[3].y, 2.08);
  EXPECT_EQ(thin.band[3], (PlotRange{1, 9}));
  EXPECT_NEAR(thin.points[0].x, 50, 1);
  EXPECT_EQ(thin.band[0], (PlotRange{1, 3}));
  EXPECT_TRUE(std::isnan(thin.points[5].y)) << "a gap";
  many.points.assign(40, {1, 2});
  EXPECT_EQ(thinned(many, 10).points, many.points) << "all of them can be seen";
}

TEST(Thinned, KeepsTheBandOfAMean) {
  Plot::Curve mean{.points = std::vector<PlotPoint>(100, {1, 2}),
                   .band = std::vector<PlotRange>(100, {1, 3})};
  mean.band[70] = {-4, 8};
  const Plot::Curve thin = thinned(mean, 5);
  EXPECT_THAT(thin.points, ElementsAre(PlotPoint{1, 2}));
  EXPECT_THAT(thin.band, ElementsAre(PlotRange{-4, 8}));
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

// The expected text is the whole script.
TEST(GnuplotScript, HasTheData) {
  Plot plot = plot_of({{{1, 5.25}, {2, kNan}, {4, 6}, {5, 7}, {6, kNan}, {8, 1e-9}}});
  EXPECT_EQ(gnuplot_script(plot, {.columns = 60, .rows = 15}), R"(set encoding utf8
set terminal dumb nofeed size 60,15 mono
set tmargin 1
set rmargin 3
set border 3
set tics nomirror out
set xrange [0:*]
set xlabel 'samples'
set title 'test_accuracy, %' noenhanced
unset key
$curve1 << END
# x y least most alone
1 5.25 5.25 5.25 5.25
2 NaN NaN NaN NaN
4 6 6 6 NaN
5 7 7 7 NaN
6 NaN NaN NaN NaN
8 1e-09 1e-09 1e-09 1e-09
END
plot \
  $curve1 using 1:2 with lines lt 1 dt 1 title ' run-1', \
  $curve1 using 1:5 with points lt 1 pt '*' notitle
)");
}

TEST(GnuplotScript, HasBandsBelowTheLinesOfAPicture) {
  Plot plot = plot_of({{{0, 5}, {1, 5}}, {{0, 1}, {1, 2}}});
  plot.curves.back().band = {{-7, 9}, {5, 5}};
  plot.curves.back().name = "it's";
  const std::string script = gnuplot_script(plot, {.type = PlotForm::Type::svg});
  EXPECT_THAT(script, HasSubstr("\n0 1 -7 9 NaN\n1 2 5 5 NaN\nEND\n"));
  EXPECT_THAT(script, HasSubstr("\nset ylabel 'test_accuracy, %' noenhanced\n"));
  EXPECT_THAT(script, EndsWith(R"(plot \
  $curve2 using 1:3:4 with filledcurves fs transparent solid 0.25 noborder lt 2 notitle, \
  $curve1 using 1:2 with lines lt 1 dt 1 title 'run-1', \
  $curve1 using 1:5 with points lt 1 pt 7 notitle, \
  $curve2 using 1:2 with lines lt 2 dt 1 title 'it''s', \
  $curve2 using 1:5 with points lt 2 pt 7 notitle
)"));
  EXPECT_THAT(gnuplot_script(plot, {}), Not(HasSubstr("filledcurves"))) << "of characters";
}

// A line that begins with '!' would be a command of the shell.
TEST(GnuplotScript, RunsNothingThatAFolderIsCalled) {
  Plot plot = plot_of({{{0, 5}, {1, 5}}, {{0, 1}, {1, 2}}});
  plot.curves.front().name = "a\n!touch b\x1b[31m";
  plot.up = "loss\n!touch c";
  for (const PlotForm::Type type : {PlotForm::Type::text, PlotForm::Type::svg}) {
    const std::string script = gnuplot_script(plot, {.type = type});
    EXPECT_THAT(script, HasSubstr("a?!touch b?[31m'"));
    EXPECT_THAT(script, HasSubstr("'loss?!touch c'"));
    EXPECT_THAT(script, Not(HasSubstr("\n!")));
  }
}

TEST(GnuplotScript, IsOfTheTypeOfThePicture) {
  const Plot plot = plot_of({{{0, 5}}});
  const auto terminal = [&](PlotForm form) {
    const std::string script = gnuplot_script(plot, form);
    const std::size_t begin = script.find("set terminal ");
    return script.substr(begin, script.find('\n', begin) - begin);
  };
  EXPECT_THAT(terminal({.type = PlotForm::Type::svg}),
              StartsWith("set terminal svg size 900,520 "));
  EXPECT_THAT(terminal({.type = PlotForm::Type::png}),
              StartsWith("set terminal pngcairo size 1800,1040 "));
  EXPECT_THAT(terminal({.type = PlotForm::Type::pdf}),
              StartsWith("set terminal pdfcairo size 9.00in,5.20in "));
  EXPECT_THAT(terminal({.colours = true}), EndsWith(" size 79,20 ansi"));
}

TEST(GnuplotScript, HasRoomForItsLegend) {
  Plot plot = plot_of(std::vector<std::vector<PlotPoint>>(40, {{0, 1}, {1, 2}}));
  plot.curves[7].name = std::string(100, 'x');
  EXPECT_THAT(gnuplot_script(plot, {.type = PlotForm::Type::svg}),
              HasSubstr("set terminal svg size 1540,890 "));
  EXPECT_THAT(
      gnuplot_script(plot, {}),
      HasSubstr("set terminal dumb nofeed size 112,60 mono\nset tmargin 1\nset rmargin 36\n"));
  EXPECT_THAT(gnuplot_script(plot, {}), HasSubstr(" lt 9 dt 1 title ' run-9'"));
  EXPECT_THAT(gnuplot_script(plot, {.type = PlotForm::Type::svg}),
              HasSubstr(" lt 9 dt 2 title 'run-9'"))
      << "colours that return have dashes";
  EXPECT_THAT(gnuplot_script(plot, {}), HasSubstr(" with points lt 9 pt '#' notitle"));
}

// A picture has a thousand parts of a longer curve, and the area that its points reach.
TEST(GnuplotScript, ThinsManyPoints) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({1.0 * i, i % 2 == 0 ? 0.5 : 1.5});
  const Plot plot = plot_of({points});
  const std::string picture = gnuplot_script(plot, {.type = PlotForm::Type::png});
  EXPECT_EQ(std::ranges::count(picture, '\n'), 1000 + 17);
  EXPECT_THAT(picture, HasSubstr(" 1 0.5 1.5 NaN\n"));
  EXPECT_THAT(picture, HasSubstr("$curve1 using 1:3:4 with filledcurves"));
  EXPECT_EQ(std::ranges::count(gnuplot_script(plot, {.columns = 100}), '\n'), 200 + 16);
}

}  // namespace
}  // namespace rubato
