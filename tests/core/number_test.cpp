#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <rubato/base/parse.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

std::string whole_error(std::string_view text) {
  return error_of([&] { return parse_whole(text, 1, 8); });
}

TEST(Number, ReadsWholeNumbers) {
  EXPECT_EQ(parse_whole("1", 1, 8), 1);
  EXPECT_EQ(parse_whole("8", 1, 8), 8);
  EXPECT_EQ(parse_whole("08", 1, 8), 8);
  EXPECT_EQ(parse_whole("-3", -5, 5), -3);
}

TEST(Number, RejectsWhatIsNoWholeNumberInRange) {
  const std::string accepted = "; accepted: a whole number from 1 to 8";
  EXPECT_EQ(whole_error("0"), "'0' is out of range" + accepted);
  EXPECT_EQ(whole_error("9"), "'9' is out of range" + accepted);
  EXPECT_EQ(whole_error("-1"), "'-1' is out of range" + accepted);
  EXPECT_EQ(whole_error("99999999999999999999"),
            "'99999999999999999999' is out of range" + accepted);
  EXPECT_EQ(whole_error("2.5"), "'2.5' is not a whole number" + accepted);
  EXPECT_EQ(whole_error("1e0"), "'1e0' is not a whole number" + accepted);
  EXPECT_EQ(whole_error("x"), "'x' is not a number" + accepted);
  EXPECT_EQ(whole_error("4x"), "'4x' is not a number" + accepted);
  EXPECT_EQ(whole_error("0x4"), "'0x4' is not a number" + accepted);
  EXPECT_EQ(whole_error(" 4"), "' 4' is not a number" + accepted);
  EXPECT_EQ(whole_error(""), "'' is empty" + accepted);
}

TEST(Number, ReadsEverySeed) {
  EXPECT_EQ(parse_seed("0"), 0U);
  EXPECT_EQ(parse_seed("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  const std::string accepted = "; accepted: a whole number from 0 to 18446744073709551615";
  const auto error_with = [](std::string_view text) {
    return error_of([&] { return parse_seed(text); });
  };
  EXPECT_EQ(error_with("-1"), "'-1' is out of range" + accepted);
  EXPECT_EQ(error_with("18446744073709551616"),
            "'18446744073709551616' is out of range" + accepted);
  EXPECT_EQ(error_with("1.5"), "'1.5' is not a whole number" + accepted);
}

TEST(Number, ReadsRealNumbers) {
  constexpr RealRange kHalfOpen{0, 1, true, false, "a number from 0 to below 1"};
  EXPECT_EQ(parse_real("0", kHalfOpen), 0);
  EXPECT_EQ(parse_real("1e-3", kHalfOpen), 1e-3);
  const std::string accepted = "; accepted: a number from 0 to below 1";
  const auto error_with = [&](std::string_view text) {
    return error_of([&] { return parse_real(text, kHalfOpen); });
  };
  EXPECT_EQ(error_with("1"), "'1' is out of range" + accepted);
  EXPECT_EQ(error_with("-0.1"), "'-0.1' is out of range" + accepted);
  EXPECT_EQ(error_with("x"), "'x' is not a number" + accepted);
  EXPECT_EQ(error_with(""), "'' is empty" + accepted);
}

TEST(Number, RejectsWhatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr RealRange kPositive{0, kInfinity, false, true, "a number greater than 0"};
  EXPECT_EQ(parse_real("1e300", kPositive), 1e300);
  for (const std::string_view text : {"nan", "inf", "-inf", "1e999", "0"}) {
    EXPECT_EQ(error_of([&] { return parse_real(text, kPositive); }),
              "'" + std::string(text) + "' is out of range; accepted: a number greater than 0");
  }
}

// The limit that goes without saying is said to whoever is beyond it.
TEST(Number, NamesTheLargestWhereItIsExceeded) {
  const auto error_with = [](std::string_view text, const RealRange& range) {
    return error_of([&] { return parse_real(text, range); });
  };
  constexpr RealRange kFromZero{0, kLargestReal, true, true, "a number of at least 0"};
  constexpr RealRange kAny{-kLargestReal, kLargestReal, true, true, "a number"};
  for (const std::string_view text : {"1e301", "1e308", "1e999", "inf"}) {
    EXPECT_EQ(error_with(text, kFromZero),
              "'" + std::string(text) +
                  "' is out of range; accepted: a number of at least 0, up to 1e+300");
  }
  for (const std::string_view text : {"1e301", "-1e301", "-1e999"}) {
    EXPECT_EQ(error_with(text, kAny), "'" + std::string(text) +
                                          "' is out of range; accepted: a number, from -1e+300 to "
                                          "1e+300");
  }
  for (const std::string_view text : {"-1", "-1e301", "-1e999", "1e-999", "nan"}) {
    EXPECT_EQ(error_with(text, kFromZero),
              "'" + std::string(text) + "' is out of range; accepted: a number of at least 0");
  }
  EXPECT_EQ(error_with("x", kFromZero), "'x' is not a number; accepted: a number of at least 0");
  constexpr RealRange kBounded{1, 1e6, true, true, "a number from 1 to 1e6"};
  EXPECT_EQ(error_with("1e308", kBounded),
            "'1e308' is out of range; accepted: a number from 1 to 1e6");
}

TEST(Number, CountsAmongRealNumbersAreCounts) {
  EXPECT_EQ(count_of(0), 0);
  EXPECT_EQ(count_of(7), 7);
  // Above it not every whole number is a double.
  EXPECT_EQ(count_of(0x1p53), std::int64_t{1} << 53);
  const auto error = [](double value) { return error_of([&] { return count_of(value); }); };
  EXPECT_EQ(error(-1), "-1 is not a count");
  EXPECT_EQ(error(1.5), "1.5 is not a count");
  EXPECT_EQ(error(0x1p54), "1.8014398509481984e+16 is not a count");
  EXPECT_EQ(error(std::numeric_limits<double>::quiet_NaN()), "nan is not a count");
  EXPECT_EQ(error(std::numeric_limits<double>::infinity()), "inf is not a count");
  EXPECT_EQ(error(-std::numeric_limits<double>::infinity()), "-inf is not a count");
}

TEST(Number, KnowsNumbersOfEveryKind) {
  for (const std::string_view text : {"128", "-1", "0.5", "1e999", "99999999999999999999"}) {
    EXPECT_TRUE(is_number(text)) << text;
  }
  for (const std::string_view text : {"", "128.csv", "./128", "elastic", " 1"}) {
    EXPECT_FALSE(is_number(text)) << text;
  }
}

// Three numbers, behind how many they are.
struct Inner {
  double number = 0;
  std::optional<double> best{};
  void visit_state(NumberVisitor& numbers) {
    numbers.number(number);
    numbers.optional(best);
  }
};
struct Learned {
  std::int64_t steps = 0;
  bool over = false;
  Inner inner{};
  void visit_state(NumberVisitor& numbers) {
    numbers.count(steps);
    numbers.require(steps < 100);
    numbers.flag(over);
    numbers.part(inner);
  }
};

TEST(NumberVisitor, LoadsWhatItHasSaved) {
  const Learned all{.steps = 7, .over = true, .inner = {.number = -0.5, .best = 2.0}};
  EXPECT_EQ(numbers_of(all), (std::vector<double>{7, 1, 3, -0.5, 1, 2}));
  EXPECT_EQ(numbers_of(Learned()), (std::vector<double>{0, 0, 3, 0, 0, 0}));
  Learned loaded{.steps = 1, .inner = {.best = 3.0}};
  load_numbers(loaded, numbers_of(all), "it");
  EXPECT_EQ(numbers_of(loaded), numbers_of(all));
  load_numbers(loaded, numbers_of(Learned()), "it");
  EXPECT_EQ(loaded.inner.best, std::nullopt);
}

TEST(NumberVisitor, RefusesWhatIsNoState) {
  const auto error = [](const std::vector<double>& numbers) {
    return error_of([&] { load_numbers(Learned(), numbers, "it"); });
  };
  EXPECT_EQ(error({7, 1, 3, 0, 0, 0}), "no error");
  EXPECT_EQ(error({7, 1, 3, 0, 0, 0, 9}), "the state of it has 7 numbers; accepted: 6");
  EXPECT_EQ(error({7, 1, 2, 0, 0}), "the state of it has 2 numbers; accepted: 3");
  EXPECT_EQ(error({7, 1, 4, 0, 0, 0}), "the state of it is damaged");
  EXPECT_EQ(error({7, 1}), "the state of it is damaged");
  EXPECT_EQ(error({100, 1, 3, 0, 0, 0}), "the state of it is damaged");
  EXPECT_EQ(error({-1, 1, 3, 0, 0, 0}), "-1 is not a count");
}

}  // namespace
}  // namespace rubato
