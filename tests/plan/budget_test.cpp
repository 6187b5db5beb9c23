#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/step_source.hpp>

#include "support/error_of.hpp"

namespace rubato {
namespace {

Spent spent(double iterations, std::int64_t samples, double seconds = 0, double money = 0) {
  return {.iterations = iterations,
          .samples = samples,
          .time = ClockTime{.seconds = seconds, .money = money}};
}

TEST(Budget, IsReachedByWhatIsLimited) {
  const Spent much = spent(1e6, 1'000'000, 1e6, 1e6);
  EXPECT_EQ(reached({}, much), "");
  EXPECT_EQ(reached({.iterations = 7}, spent(6.99, 1)), "");
  EXPECT_EQ(reached({.iterations = 7}, spent(7, 1)), "7 iterations reached");
  EXPECT_EQ(reached({.samples = 100}, spent(0, 99)), "");
  EXPECT_EQ(reached({.samples = 100}, spent(0, 100)), "100 samples reached");
  EXPECT_EQ(reached({.hours = 0.5}, spent(0, 1, 1799.9)), "");
  EXPECT_EQ(reached({.hours = 0.5}, spent(0, 1, 1800)), "0.5 hours of the clock reached");
  EXPECT_EQ(reached({.money = 3}, spent(0, 1, 0, 2.99)), "");
  EXPECT_EQ(reached({.money = 3}, spent(0, 1, 0, 3)), "3 of money reached");
  EXPECT_EQ(reached({.hours = 0.5}, {.samples = 9}), "") << "there is no clock yet";
}

TEST(Budget, KnowsHowMuchOfItIsSpent) {
  EXPECT_EQ(share_spent({}, spent(5, 5, 5, 5)), 0);
  EXPECT_EQ(share_spent({.iterations = 10}, spent(4, 5)), 0.4);
  EXPECT_EQ(share_spent({.iterations = 10, .samples = 10}, spent(4, 5)), 0.5) << "the nearer one";
  EXPECT_EQ(share_spent({.iterations = 10, .samples = 10}, spent(6, 5)), 0.6);
  EXPECT_EQ(share_spent({.hours = 1, .money = 4}, spent(0, 0, 900, 2)), 0.5);
  EXPECT_EQ(share_spent({.hours = 1, .money = 4}, spent(0, 0, 3000, 2)), 3000.0 / 3600);
  EXPECT_EQ(share_spent({.samples = 2}, spent(0, 3)), 1) << "no more than all of it";
}

TEST(Budget, IsAboveZero) {
  const auto error = [](const Budget& budget) { return error_of([&] { require_valid(budget); }); };
  EXPECT_EQ(error({.iterations = 0}), "0 iterations: accepted are values above 0");
  EXPECT_EQ(error({.samples = 0}), "0 samples to train: at least 1 is needed");
  EXPECT_EQ(error({.hours = -1}), "-1 hours: accepted are values above 0");
  EXPECT_EQ(error({.hours = std::numeric_limits<double>::infinity()}),
            "inf hours: accepted are values above 0");
  EXPECT_EQ(error({.money = std::nan("")}), "nan units of money: accepted are values above 0");
  EXPECT_EQ(error({.iterations = 1, .samples = 1, .hours = 1, .money = 1}), "no error");
}

TEST(Budget, IsSaidInWords) {
  EXPECT_EQ(to_text({}), "");
  EXPECT_EQ(to_text({.iterations = 2.5, .samples = 10, .hours = 3, .money = 0.25}),
            "iterations 2.5, samples 10, hours 3, money 0.25");
}

TEST(ClockTime, IsMadeOfItsState) {
  const ClockTime time{.seconds = 1,
                       .core_seconds = 2,
                       .money = 3,
                       .idle_seconds = 4,
                       .lost_seconds = 5,
                       .restart_seconds = 1e300,
                       .restarts = 7};
  const auto loaded = [](const std::vector<double>& numbers) {
    ClockTime from;
    load_numbers(from, numbers, "the clock");
    return from;
  };
  const std::vector<double> good = numbers_of(time);
  EXPECT_EQ(loaded(good), time);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::vector<double> bad = good;
    bad[i] = -1;
    EXPECT_NE(error_of([&] { return loaded(bad); }), "no error") << i;
  }
  std::vector<double> bad = good;
  bad.back() = 1e300;
  EXPECT_NE(error_of([&] { return loaded(bad); }), "no error") << "no whole number";
  EXPECT_EQ(error_of([&] {
              return loaded({good.begin(), good.end() - 1});
            }),
            "the state of the clock has 6 numbers; accepted: 7");
}

}  // namespace
}  // namespace rubato
