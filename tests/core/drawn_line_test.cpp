#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/core/terminal/drawn_lines.hpp"
#include "support/pseudo_terminal.hpp"

namespace rubato {
namespace {

TEST(ProgressBar, FillsUpAndRoundsDown) {
  EXPECT_EQ(progress_bar(-1, 3, false), "...");
  EXPECT_EQ(progress_bar(0, 4, false), "....");
  EXPECT_EQ(progress_bar(0.5, 4, false), "##..");
  EXPECT_EQ(progress_bar(0.99, 3, false), "##.");
  EXPECT_EQ(progress_bar(1, 4, false), "####");
  EXPECT_EQ(progress_bar(7, 4, false), "####");
  EXPECT_EQ(progress_bar(0.5, 4, true), "██  ");
  EXPECT_EQ(progress_bar(0.3125, 4, true), "█▎  ");
  EXPECT_EQ(progress_bar(1.0 / 16, 2, true), "▏ ");
  EXPECT_EQ(progress_bar(15.0 / 16, 1, true), "▉");
  EXPECT_EQ(progress_bar(1, 2, true), "██");
}

TEST(FittingLine, LeavesOutWholeFields) {
  const std::vector<LineField> fields{{"epoch 1/2", 3}, {"lr 0.03125", 1}, {"loss 0.25", 2}};
  EXPECT_EQ(fitting_line(fields, 80), "epoch 1/2  lr 0.03125  loss 0.25");
  EXPECT_EQ(fitting_line(fields, 32), "epoch 1/2  lr 0.03125  loss 0.25");
  EXPECT_EQ(fitting_line(fields, 31), "epoch 1/2  loss 0.25");
  EXPECT_EQ(fitting_line(fields, 19), "epoch 1/2");
  EXPECT_EQ(fitting_line(fields, 8), "");
  EXPECT_EQ(fitting_line(fields, -1), "");
}

TEST(FittingLine, CountsColumnsNotBytes) {
  EXPECT_EQ(fitting_line({{"\u00e4\u00f6\u00fc", 2}, {"x", 1}}, 6), "\u00e4\u00f6\u00fc  x");
  EXPECT_EQ(fitting_line({{"\u5b66\u7fd2", 2}, {"x", 1}}, 6), "\u5b66\u7fd2");
}

TEST(LineWithBar, PutsTheBarBehindTheFirstField) {
  setenv("LC_ALL", "C", 1);
  const std::vector<LineField> fields{{"epoch 1/2", 2}, {"loss 0.25", 1}};
  EXPECT_EQ(line_with_bar(fields, 29, 0.5, 4), "epoch 1/2 ####....  loss 0.25");
  EXPECT_EQ(line_with_bar(fields, 25, 0.5, 4), "epoch 1/2 ##..  loss 0.25");
  EXPECT_EQ(line_with_bar(fields, 24, 0.5, 4), "epoch 1/2  loss 0.25");
  EXPECT_EQ(line_with_bar(fields, 24, 1, 3), "epoch 1/2 ###  loss 0.25");
  EXPECT_EQ(line_with_bar(fields, 200, 0, 4), "epoch 1/2 " + std::string(30, '.') + "  loss 0.25");
  EXPECT_EQ(line_with_bar(fields, 8, 0.5, 4), "");
  unsetenv("LC_ALL");
}

TEST(DrawableColumns, LeaveOneFree) {
  const test::PseudoTerminal terminal(60);
  EXPECT_EQ(drawable_columns(terminal.program()), 59);
  EXPECT_EQ(drawable_columns(-1), 79);
}

TEST(DrawnLine, IsDrawnOverAndTakenAwayOnce) {
  std::string sent;
  DrawnLine line([&](std::string_view text) { sent += text; });
  line.clear();
  EXPECT_EQ(sent, "");
  line.draw("1 of 2");
  EXPECT_TRUE(line.drawn());
  line.draw("2 of 2");
  EXPECT_EQ(sent, "\r\x1b[2K1 of 2\r\x1b[2K2 of 2");
  line.clear();
  line.clear();
  EXPECT_EQ(sent, "\r\x1b[2K1 of 2\r\x1b[2K2 of 2\r\x1b[2K");
  EXPECT_FALSE(line.drawn());
}

}  // namespace
}  // namespace rubato
