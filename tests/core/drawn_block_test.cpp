#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "base/core/terminal/charts.hpp"
#include "base/core/terminal/drawn_lines.hpp"
#include "base/core/terminal/terminal.hpp"
#include "support/matchers.hpp"
#include "support/screen.hpp"

namespace rubato {
namespace {

TEST(Paint, IsWithoutWidth) {
  EXPECT_EQ(painted("loss", Ink::dim, true), "\x1b[2mloss\x1b[0m");
  EXPECT_EQ(painted("loss", Ink::dim, false), "loss");
  EXPECT_EQ(painted("loss", Ink::plain, true), "loss");
  EXPECT_EQ(painted("", Ink::red, true), "");
  EXPECT_EQ(painted_width("a" + painted("▁█", Ink::red, true) + "b"), 4U);
  EXPECT_EQ(painted_width("broken \x1b[3"), 7U);
}

TEST(Sparkline, GoesFromItsLeastToItsLargestValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values{0, 1, 2, 3, 4, 5, 6, 7, 8, nan, 0};
  EXPECT_EQ(sparkline(values, true), "▁▂▃▄▅▆▇██ ▁");
  EXPECT_EQ(sparkline(values, false), "_.-~=+*## _");
  EXPECT_EQ(sparkline(std::vector<double>{3, 3}, true), "▄▄") << "no value is larger";
  EXPECT_EQ(sparkline(std::vector<double>{-std::numeric_limits<double>::infinity(), 1}, true),
            " ▄");
  EXPECT_EQ(sparkline({}, true), "");
}

TEST(ThinBar, HasHalvesOfCells) {
  const auto bar = [](double done, bool utf8) {
    const auto [full, left] = thin_bar(done, 4, utf8);
    return full + '|' + left;
  };
  EXPECT_EQ(bar(0, true), "|────");
  EXPECT_EQ(bar(0.5, true), "━━|──");
  EXPECT_EQ(bar(0.625, true), "━━╸|─");
  EXPECT_EQ(bar(0.99, true), "━━━╸|");
  EXPECT_EQ(bar(1, true), "━━━━|");
  EXPECT_EQ(bar(7, true), "━━━━|");
  EXPECT_EQ(bar(-std::numeric_limits<double>::quiet_NaN(), true), "|────");
  EXPECT_EQ(bar(0.5, false), "##|..");
  EXPECT_EQ(bar(1, false), "####|");
}

TEST(CoreCells, LoseNoKindOfCore) {
  const auto cells = [](std::int64_t busy, std::int64_t cores, std::int64_t most, int width) {
    const CoreCells all = core_cells(busy, cores, most, width, true);
    return all.busy + all.idle + all.absent;
  };
  EXPECT_EQ(cells(3, 4, 6, 20), "■■■□··");
  EXPECT_EQ(cells(4, 4, 4, 20), "■■■■");
  EXPECT_EQ(cells(0, 0, 4, 20), "····");
  // A cell for 64 of them.
  EXPECT_EQ(cells(256, 256, 512, 8), "■■■■····");
  EXPECT_EQ(cells(1, 256, 512, 8), "■□□□····");
  EXPECT_EQ(cells(255, 256, 512, 8), "■■■□····") << "one has nothing to do";
  EXPECT_EQ(cells(1, 1, 512, 8), "■·······");
  EXPECT_EQ(cells(3, 4, 6, 0), "");
  const CoreCells ascii = core_cells(3, 4, 6, 20, false);
  EXPECT_EQ(ascii.busy + ascii.idle + ascii.absent, "###o..");
}

class DrawnBlockTest : public testing::Test {
 protected:
  DrawnBlockTest()
      : block_([this](std::string_view text) {
          screen_.send(text);
          ++writes_;
        }) {
    screen_.send("before\n");
  }

  test::Screen screen_{20};
  int writes_ = 0;
  DrawnBlock block_;
};

TEST_F(DrawnBlockTest, IsDrawnOverInOneWrite) {
  block_.draw({"first line", "second"}, 20);
  EXPECT_EQ(writes_, 1);
  EXPECT_THAT(screen_.rows(), ElementsAre("before", "first line", "second", ""));
  block_.draw({painted("1st", Ink::red, true), "2nd", "3rd"}, 20);
  EXPECT_EQ(writes_, 2);
  EXPECT_THAT(screen_.rows(), ElementsAre("before", "1st", "2nd", "3rd", ""));
  block_.draw({"one"}, 20);
  EXPECT_THAT(screen_.rows(), ElementsAre("before", "one", ""));
  EXPECT_TRUE(screen_.at_line_begin()) << "between any two drawings";
}

TEST_F(DrawnBlockTest, GivesWay) {
  block_.clear(20);
  EXPECT_EQ(writes_, 0);
  block_.draw({"first", "second"}, 20);
  EXPECT_TRUE(block_.drawn());
  block_.clear(20);
  EXPECT_FALSE(block_.drawn());
  screen_.send("epoch 1\n");
  block_.draw({"third"}, 20);
  EXPECT_THAT(screen_.rows(), ElementsAre("before", "epoch 1", "third", ""));
}

// Such as what the terminal shows of Ctrl-C, and a message.
TEST_F(DrawnBlockTest, StaysWhereSomethingElseHasCome) {
  block_.draw({"first", "second"}, 20);
  screen_.send("^C\nmessage\n");
  block_.leave();
  block_.draw({"third"}, 20);
  block_.clear(20);
  EXPECT_THAT(screen_.rows(), ElementsAre("before", "first", "second", "^C", "message", ""));
}

// A terminal that has become narrower shows a line of 12 columns in three rows of 5.
TEST(DrawnBlock, FindsItsTopOnATerminalThatHasBecomeNarrower) {
  test::Screen narrow(5);
  narrow.send("above\n123456789012\nabc\n");
  test::Screen wide(20);
  bool is_wide = true;
  DrawnBlock moved([&](std::string_view text) { (is_wide ? wide : narrow).send(text); });
  moved.draw({painted("123456789012", Ink::blue, true), "abc"}, 20);
  is_wide = false;
  moved.draw({"x"}, 5);
  EXPECT_THAT(narrow.rows(), ElementsAre("above", "x", ""));
}

// Terminals keep the rows that leave their top, and bring them back when they become higher.
TEST(DrawnBlock, LeavesNoLineOfBeforeTheTerminalWasLow) {
  test::Screen high(20);
  test::Screen low(20);
  test::Screen high_again(20);
  test::Screen* screen = &high;
  DrawnBlock block([&](std::string_view text) { screen->send(text); });
  block.draw({"1", "2", "3", "4", "5", "6", "7"}, 20, 24);
  screen = &low;
  low.send("4\n5\n6\n7\n");
  block.draw({"a", "b", "c", "d"}, 20, 5);
  block.draw({"a", "b", "c", "d"}, 20, 5);
  EXPECT_THAT(low.rows(), ElementsAre("a", "b", "c", "d", ""));
  screen = &high_again;
  high_again.send("above\n1\n2\n3\na\nb\nc\nd\n");
  block.draw({"A", "B", "C", "D", "E"}, 20, 24);
  EXPECT_THAT(high_again.rows(), ElementsAre("above", "A", "B", "C", "D", "E", ""));
  block.draw({"x"}, 20, 24);
  EXPECT_THAT(high_again.rows(), ElementsAre("above", "x", ""));
}

// What was printed while the terminal was low comes back with the rows above, and stays.
TEST(DrawnBlock, DrawsOverNothingThatWasPrintedWhileTheTerminalWasLow) {
  test::Screen screen(20);
  DrawnBlock block([&](std::string_view text) { screen.send(text); });
  block.draw({"1", "2", "3", "4"}, 20, 24);
  block.draw({"a", "b"}, 20, 3);
  block.clear(20);
  screen.send("epoch 1\n");
  block.draw({"x", "y"}, 20, 3);
  block.draw({"x", "y"}, 20, 24);
  EXPECT_THAT(screen.rows(), Contains("epoch 1"));
}

}  // namespace
}  // namespace rubato
