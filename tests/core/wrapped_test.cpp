#include "core/wrapped.hpp"

#include <string>

#include <gtest/gtest.h>

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

TEST(Wrapped, CountsCharactersNotBytes) {
  EXPECT_EQ(width_of("\u00fc \u2265 \U0001f600"), 5);
  std::string umlauts;
  for (int i = 0; i < 10; ++i) umlauts += "\u00fc";
  EXPECT_EQ(wrapped(umlauts + ' ' + umlauts, 80 - 21), umlauts + ' ' + umlauts);
}

}  // namespace
}  // namespace rubato
