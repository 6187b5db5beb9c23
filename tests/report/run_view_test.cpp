// The view of a run as a person sees it, at several widths.

#include "runs/report/run_view.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "base/core/terminal/terminal.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// A run of five epochs in the middle of its third, whose cores come and go.
RunView half_way() {
  RunView run;
  for (int step = 1; step <= 120; ++step) {
    run.step = step;
    run.most_cores = 16;
    run.cores = step % 40 < 20 ? 16 : 8;
    run.busy = run.cores - 2;
    run.batch = 32 * run.cores;
    run.samples += run.batch;
    run.loss = 2.3 * std::exp(-step / 40.0);
    run.losses.add(static_cast<double>(run.samples), run.loss);
    run.batches.add(static_cast<double>(run.samples), static_cast<double>(run.batch));
    if (step % 48 != 0) continue;
    run.test = step == 48 ? 0.8125 : 0.975;
    run.tests.add(static_cast<double>(run.samples), *run.test);
  }
  run.epoch = 3;
  run.epochs = 5;
  run.done = 0.5;
  run.seconds_left = 75;
  run.rate = 18'600;
  run.learning_rate = 0.02125;
  run.gain = 1.84;
  return run;
}

std::string text_of(const RunView& run, int columns, bool utf8 = true) {
  const auto lines = view_lines(run, {.columns = columns, .utf8 = utf8, .colours = false});
  return fmt::format("\n{}\n", fmt::join(lines, "\n"));
}

TEST(RunView, FitsEightyColumns) {
  EXPECT_EQ(text_of(half_way(), 80), R"(
epoch 3/5     50 %  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━──────────────────────────────
left          1:15  step 120  18.6k samples/s
loss        0.1145  ██████▇▇▆▆▆▆▅▅▅▅▅▄▄▃▃▃▃▃▂▂▂▁▁▁▁
accuracy   97.50 %              ▁▁▁▁▁▁▁▁▁▁▁▁▁█
batch          512  ██████▄▁▁▁██████▄▁▁▁██████▄▁▁▁█
cores        16/16  ■■■■■■■■■■■■■■□□
lr         0.02125  gain 1.84
)");
}

TEST(RunView, IsNoWiderThanPeopleLook) {
  EXPECT_EQ(text_of(half_way(), 200), text_of(half_way(), 120));
  EXPECT_NE(text_of(half_way(), 110), text_of(half_way(), 120));
}

TEST(RunView, SaysHowModelledTimeAndMoneyStand) {
  RunView run = half_way();
  run.hours = 2.225;
  run.money = 12.5;
  const auto last_line = [&](int columns) {
    return view_lines(run, {.columns = columns, .colours = false}).back();
  };
  EXPECT_EQ(last_line(80), "lr         0.02125  gain 1.84  modelled 2:13:30  money 12.5");
  EXPECT_EQ(last_line(50), "lr         0.02125  modelled 2:13:30  money 12.5");
}

TEST(RunView, IsAsciiWhereTheLocaleIs) {
  EXPECT_EQ(text_of(half_way(), 60, false), R"(
epoch 3/5     50 %  ####################....................
left          1:15  step 120  18.6k samples/s
loss        0.1145  ####**++===~~---..___
accuracy   97.50 %          ________#
batch          512  ####-_-####__=###=__#
cores        16/16  ##############oo
lr         0.02125  gain 1.84
)");
}

// Before the first step, and where it is not known how long the run will be.
TEST(RunView, LeavesOutWhatIsNotKnown) {
  RunView run;
  EXPECT_EQ(text_of(run, 50), R"(
epoch 1/1           ──────────────────────────────
left                step 0
)");
  run.step = 1;
  run.samples = 64;
  run.batch = 64;
  run.cores = run.busy = run.most_cores = 2;
  run.loss = std::numeric_limits<double>::quiet_NaN();
  run.losses.add(64, run.loss);
  run.batches.add(64, 64);
  run.test = 0.25;
  run.test_is_accuracy = false;
  run.tests.add(64, 0.25);
  EXPECT_EQ(text_of(run, 50), R"(
epoch 1/1           ──────────────────────────────
left                step 1
loss           nan
test loss   0.2500                               ▄
batch           64                               ▄
cores          2/2  ■■
lr               0  gain 1.00
)");
}

// A run that is done has ended; what is not, however little is left, is not at 100 %.
TEST(RunView, RoundsNoPercentUp) {
  RunView run = half_way();
  run.done = 0.996;
  EXPECT_THAT(view_lines(run, {.columns = 80, .colours = false}).front(), HasSubstr(" 99 %  "));
  EXPECT_THAT(view_line("run", 3, run, {.columns = 80, .colours = false}), HasSubstr("  99 %  "));
  run.done = 1;
  EXPECT_THAT(view_lines(run, {.columns = 80, .colours = false}).front(), HasSubstr(" 100 %  "));
}

TEST(RunView, WritesLongLossesShort) {
  RunView run = half_way();
  run.loss = 1.25e30;
  EXPECT_THAT(view_lines(run, {.columns = 80, .colours = false})[2],
              StartsWith("loss     1.250e+30  ██████"));
}

// No line is longer, at any width, however large the numbers are.
TEST(RunView, FitsAnyWidth) {
  RunView run = half_way();
  run.epoch = 123'456;
  run.epochs = 1'000'000;
  run.step = 1'234'567'890;
  run.hours = 98'765;
  run.loss = -1.25e300;
  run.batch = 123'456'789'012;
  run.cores = run.most_cores = run.busy = 1'000'000;
  run.money = 1.25e9;
  for (const bool utf8 : {true, false}) {
    for (int columns = 1; columns <= 210; ++columns) {
      for (const std::string& line : view_lines(run, {.columns = columns, .utf8 = utf8})) {
        EXPECT_LE(painted_width(line), static_cast<std::size_t>(columns)) << line;
      }
    }
  }
}

TEST(RunView, HasColoursThatEnd) {
  for (const std::string& line : view_lines(half_way(), {.columns = 80})) {
    const std::size_t last = line.rfind('\x1b');
    if (last == std::string::npos) continue;
    EXPECT_EQ(line.substr(last, 4), "\x1b[0m") << line;
  }
}

TEST(RunViewer, LeavesItsDrawingAloneOnceSomethingElseWasWritten) {
  std::string text;
  int disturbances = 0;
  RunViewer viewer([&text](std::string_view drawn) { text = drawn; }, -1,
                   [&disturbances] { return disturbances; });
  const std::string over_the_old_lines = "\x1b[2A";
  viewer.draw();
  viewer.draw();
  EXPECT_THAT(text, HasSubstr(over_the_old_lines));
  disturbances = 1;
  viewer.draw();
  EXPECT_THAT(text, Not(HasSubstr(over_the_old_lines)));
  viewer.draw();
  EXPECT_THAT(text, HasSubstr(over_the_old_lines)) << "nothing was written since";
}

TEST(Series, HasTheMeansOfItsCells) {
  Series series;
  EXPECT_THAT(series.curve(4, 8), ElementsAre());
  for (int i = 0; i < 8; ++i) series.add(i, i);
  EXPECT_THAT(series.curve(4, 8), ElementsAre(0.5, 2.5, 4.5, 6.5));
  EXPECT_THAT(series.curve(4, 16), ElementsAre(1.5, 5.5)) << "the run has come half way";
  EXPECT_THAT(series.curve(16, 16), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Series, GoesOnWhereACellHasNoNumber) {
  Series series;
  series.add(2, 5);
  series.add(6, 7);
  EXPECT_THAT(series.curve(8, 8), ElementsAre(testing::IsNan(), testing::IsNan(), 5, 5, 5, 5, 7));
}

TEST(Series, PassesOverWhatIsNotFinite) {
  Series series;
  series.add(0, std::numeric_limits<double>::infinity());
  series.add(1, 3);
  series.add(2, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(series.curve(3, 3), ElementsAre(testing::IsNan(), 3, testing::IsNan()));
  EXPECT_THAT(series.curve(1, 3), ElementsAre(3));
}

// A million numbers of a run whose length nobody knew: the means are those of all of them.
TEST(Series, KeepsTheMeansOfALongRun) {
  Series series;
  constexpr int kNumbers = 1 << 20;
  for (int i = 0; i < kNumbers; ++i) series.add(i, i);
  const std::vector<double> curve = series.curve(4, kNumbers);
  ASSERT_EQ(curve.size(), 4U);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const double middle = (static_cast<double>(i) + 0.5) * kNumbers / 4;
    EXPECT_NEAR(curve[i], middle, 1);
  }
}

}  // namespace
}  // namespace rubato
