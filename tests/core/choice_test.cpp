#include <array>

#include <gmock/gmock.h>

#include <rubato/base/parse.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

enum class Fruit { apple, pear };
constexpr std::array<Choice<Fruit>, 2> kFruits{{{Fruit::apple, "apple"}, {Fruit::pear, "pear"}}};

TEST(Choice, ParsesEveryName) {
  EXPECT_EQ(parse_choice("fruit", "apple", kFruits), Fruit::apple);
  EXPECT_EQ(parse_choice("fruit", "pear", kFruits), Fruit::pear);
}

TEST(Choice, NamesEveryValue) {
  EXPECT_EQ(choice_name(kFruits, Fruit::pear), "pear");
}

TEST(Choice, SuggestsTheNearestNameWhereOneIsNear) {
  const auto error_of = [](const char* name) {
    return test::error_of([&] { return parse_choice("fruit", name, kFruits); });
  };
  EXPECT_EQ(error_of("aplpe"),
            "unknown fruit 'aplpe'; did you mean 'apple'? accepted: apple, pear");
  EXPECT_EQ(error_of("bicycle"), "unknown fruit 'bicycle'; accepted: apple, pear");
}

TEST(Nearest, TakesABeginningForTheWholeName) {
  constexpr std::array<std::string_view, 2> kNames{"linear-momentum", "constant"};
  EXPECT_EQ(nearest("lin", kNames), "linear-momentum");
}

TEST(Nearest, TakesCapitalsForNoMistakes) {
  constexpr std::array<std::string_view, 3> kPrecisions{"full", "bf16", "fp16"};
  EXPECT_EQ(nearest("FP16", kPrecisions), "fp16");
  EXPECT_EQ(nearest("BF16", kPrecisions), "bf16");
}

}  // namespace
}  // namespace rubato
