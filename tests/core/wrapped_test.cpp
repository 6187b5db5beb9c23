#include <string>

#include <gmock/gmock.h>

#include "base/core/terminal/terminal.hpp"
#include "base/core/text/text.hpp"
#include "support/matchers.hpp"
#include "support/pseudo_terminal.hpp"

namespace rubato {
namespace {

const std::string kTen(10, 'x');

TEST(Wrapped, FillsLinesOfEightyColumns) {
  const std::string two = kTen + ' ' + kTen;
  EXPECT_EQ(wrapped(two, 80 - 21), two);
  EXPECT_EQ(wrapped(two, 80 - 20), kTen + '\n' + std::string(60, ' ') + kTen);
  EXPECT_EQ(wrapped(two + " y", 80 - 21), two + '\n' + std::string(59, ' ') + 'y');
}

TEST(Wrapped, NeverBreaksAWord) {
  const std::string hundred(100, 'x');
  EXPECT_EQ(wrapped(hundred, 2), hundred);
  EXPECT_EQ(wrapped("a " + hundred + " b", 2), "a\n  " + hundred + "\n  b");
}

TEST(Wrapped, TakesAnyWhiteSpaceForOneBlank) {
  EXPECT_EQ(wrapped("  a \t b\nc  ", 0), "a b c");
  EXPECT_EQ(wrapped("", 4), "");
  EXPECT_EQ(wrapped(" ", 4), "");
}

TEST(Wrapped, CountsColumnsNotBytes) {
  EXPECT_EQ(width_of("\u00fc \u2265 \U0001f600"), 6);
  std::string umlauts;
  for (int i = 0; i < 10; ++i) umlauts += "\u00fc";
  EXPECT_EQ(wrapped(umlauts + ' ' + umlauts, 80 - 21), umlauts + ' ' + umlauts);
}

TEST(Wrapped, FillsTheLinesOfANarrowTerminal) {
  const std::string two = kTen + ' ' + kTen;
  EXPECT_EQ(wrapped(two, 0, {21}), two);
  EXPECT_EQ(wrapped(two, 2, {22}), kTen + "\n  " + kTen);
  // Nobody reads longer lines, however wide the terminal is.
  const std::string forty(40, 'x');
  EXPECT_EQ(wrapped(forty + ' ' + forty, 0, {200}), forty + '\n' + forty);
}

TEST(Fitted, LeavesLinesThatFitAndTextOfNoTerminal) {
  const std::string text = "  a  b\n\nlong long long\n";
  EXPECT_EQ(fitted(text, {}), text);
  EXPECT_EQ(fitted(text, {14}), text);
  EXPECT_EQ(fitted("", {10}), "");
}

TEST(Fitted, BreaksLinesBetweenWords) {
  EXPECT_EQ(fitted("one two three four\nx", {9}), "one two\n  three\n  four\nx");
  EXPECT_EQ(fitted("  one two", {8}), "  one\n    two");
  EXPECT_EQ(fitted("one two six", {7}), "one two\n  six") << "to the last column";
  // What is indented far goes on no further than in the middle.
  EXPECT_EQ(fitted("          one two", {14}), "          one\n       two");
  // What is longer than the line stays whole, for somebody to copy.
  EXPECT_EQ(fitted("in /a/very/long/path now", {8}), "in\n  /a/very/long/path\n  now");
  EXPECT_EQ(fitted(std::string(30, 'x'), {8}), std::string(30, 'x'));
}

TEST(Fitted, PrefersTheGapsBetweenFields) {
  EXPECT_EQ(fitted("epoch 1/2  train loss 0.5  test loss 0.25", {30}),
            "epoch 1/2  train loss 0.5\n  test loss 0.25");
  // But not one that leaves most of the line empty.
  EXPECT_EQ(fitted("name  what this is, in many words", {30}),
            "name  what this is, in many\n  words");
}

TEST(Fitted, LeavesDrawingsAlone) {
  const std::string bar = "\r\x1b[2K" + kTen + ' ' + kTen;
  EXPECT_EQ(fitted(bar, {12}), bar);
}

TEST(CellLines, BreakLongWordsBehindPunctuation) {
  EXPECT_EQ(cell_lines("a bc d", 4), (std::vector<std::string>{"a bc", "d"}));
  EXPECT_EQ(cell_lines("spot:most=16,seed=1", 13),
            (std::vector<std::string>{"spot:most=16,", "seed=1"}));
  EXPECT_EQ(cell_lines("abcdef", 4), (std::vector<std::string>{"abcd", "ef"}));
  EXPECT_EQ(cell_lines("", 4), (std::vector<std::string>{""}));
  EXPECT_EQ(least_width_of("spot:most=16,seed=1 x"), 8U);
}

// East Asian letters and pictures have two columns, marks that are set on others none.
TEST(WidthOf, CountsColumns) {
  EXPECT_EQ(width_of("\u5b66\u7fd2"), 4U);
  EXPECT_EQ(width_of("e\u0301"), 1U);
  EXPECT_EQ(width_of("\U0001F680"), 2U);
  EXPECT_EQ(width_of("\u00e4\u2500"), 2U);
  EXPECT_EQ(width_of("\x80\xff"), 2U) << "bytes that are no UTF-8";
}

TEST(FirstColumns, KeepMarksWithTheirLetters) {
  const std::string marked = "ae\u0301\u0302i\u0308";
  EXPECT_EQ(first_columns(marked, 2), "ae\u0301\u0302");
  EXPECT_EQ(first_columns(marked, 1), "a");
  EXPECT_EQ(last_columns(marked, 1), "i\u0308");
  EXPECT_EQ(last_columns(marked, 2), "e\u0301\u0302i\u0308");
  EXPECT_EQ(first_columns("\u5b66\u7fd2", 3), "\u5b66");
  EXPECT_EQ(last_columns("\u5b66\u7fd2", 3), "\u7fd2");
  EXPECT_EQ(last_columns("\u5b66", 1), "");
  EXPECT_EQ(padded_to("\u5b66", 4), "\u5b66  ");
  EXPECT_EQ(padded_to("abc", 2), "abc");
}

TEST(CellLines, HaveTheColumnsOfWideLetters) {
  EXPECT_THAT(cell_lines("\u5b66\u7fd2\u7387", 5), ElementsAre("\u5b66\u7fd2", "\u7387"));
  EXPECT_THAT(cell_lines("\u5b66\u7fd2", 1), ElementsAre("\u5b66", "\u7fd2"))
      << "narrower than any of them";
}

TEST(LineWidth, IsThatOfTheTerminal) {
  const auto width_on = [](unsigned short columns) {
    return line_width(test::PseudoTerminal(columns).program()).columns;
  };
  EXPECT_EQ(width_on(57), 57U);
  EXPECT_EQ(width_on(20), 20U);
  EXPECT_EQ(width_on(3), 20U) << "which nobody can read anyway";
  EXPECT_EQ(width_on(0), LineWidth::kUnlimited) << "it does not say";
  EXPECT_EQ(line_width(-1).columns, LineWidth::kUnlimited) << "none";
}

}  // namespace
}  // namespace rubato
