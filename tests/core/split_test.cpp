#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "base/core/text/text.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(SplitAt, CutsAtEveryMark) {
  EXPECT_THAT(split_at("ring,tree", ','), ElementsAre("ring", "tree"));
  EXPECT_THAT(split_at("flip+shift:pixels=1,by=2", '+'),
              ElementsAre("flip", "shift:pixels=1,by=2"));
}

TEST(SplitAt, KeepsEmptyPieces) {
  EXPECT_THAT(split_at("", ','), ElementsAre(""));
  EXPECT_THAT(split_at(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
}

TEST(Trimmed, TakesCharactersAwayAtBothEnds) {
  EXPECT_EQ(trimmed(" \ta b\t", " \t"), "a b");
  EXPECT_EQ(trimmed("  ", " "), "");
  EXPECT_EQ(trimmed("", " "), "");
}

TEST(ParsedNumber, IsAllOfTheText) {
  EXPECT_EQ(parsed_number<int>("-7"), -7);
  EXPECT_EQ(parsed_number<double>("0.5"), 0.5);
  for (const std::string_view other : {"", "7 ", "7.5", "+7", "99999999999"}) {
    EXPECT_EQ(parsed_number<int>(other), std::nullopt) << other;
  }
}

TEST(LowerCase, ChangesLettersOfAsciiAlone) {
  EXPECT_EQ(lower_case("OneDNN 3"), "onednn 3");
}

TEST(FirstNames, SayHowManyThereAreBesides) {
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(first_names(names), "a, b, c");
  EXPECT_EQ(first_names(names, 2), "a, b and 1 more");
  EXPECT_EQ(first_names(std::vector<std::string>()), "");
}

TEST(ArgumentsBegin, AtACommaBeforeAName) {
  const auto arguments = [](std::string_view text, std::span<const std::string_view> lists = {}) {
    return text.substr(arguments_begin(text, lists));
  };
  EXPECT_EQ(arguments("a,b.csv"), "");
  EXPECT_EQ(arguments("a,b.csv,label=y"), ",label=y");
  EXPECT_EQ(arguments("a,B=1.csv,x=1,y=2"), ",x=1,y=2");
  EXPECT_EQ(arguments("a,x=1,b.csv,y=2"), ",y=2") << "it belongs to the path";
  constexpr std::array<std::string_view, 1> kLists{"types"};
  EXPECT_EQ(arguments("a,b.csv,types=c:number,d:number,label=y", kLists),
            ",types=c:number,d:number,label=y");
  EXPECT_EQ(arguments("a,b.csv,types=c:number,d:number,label=y"), ",label=y");
}

}  // namespace
}  // namespace rubato
