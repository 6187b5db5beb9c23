// The laws of the lifetimes of machines, which the generator `machines` draws from.
// tests/python/fit_test.py compares the script that fits them.

#include "steps/trace/life_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

LifeLaw law_of(std::string_view arguments) {
  Spec spec(fmt::format(":{}", arguments));
  LifeLaw law = LifeLaw::read(spec);
  spec.finish();
  return law;
}

// F(age), as documented.
double ended_by(const LifeLaw& law, double age) {
  return law.kind == LifeLawKind::weibull ? -std::expm1(-std::pow(age / law.life, law.shape))
                                          : -std::expm1(-age / law.life);
}

TEST(LifeLaws, HaveQuantilesThatInvertTheirDistribution) {
  constexpr std::array<std::string_view, 4> kLaws{
      "law=exponential,life=3", "law=exponential,life=30,deadline=24",
      "law=weibull,life=5,shape=0.6", "law=weibull,life=5,shape=2.5,deadline=6"};
  for (const std::string_view text : kLaws) {
    const LifeLaw law = law_of(text);
    EXPECT_EQ(law.quantile(0), 0) << text;
    double before = -1;
    for (int i = 0; i < 1000; ++i) {
      const double share = i / 1000.0;
      const double age = law.quantile(share);
      EXPECT_LE(age, law.deadline);
      EXPECT_GE(age, before) << text;
      if (age < law.deadline) {
        EXPECT_NEAR(ended_by(law, age), share, 1e-12) << text;
      }
      before = age;
    }
  }
}

// The formula of the paper, without its value at 0, in the shares of lives that quantile() gives.
TEST(LifeLaws, HaveTheBathtubOfThePaper) {
  const LifeLaw law = law_of("law=bathtub,a=0.4,tau1=1.2,tau2=0.8,b=24.1,deadline=24");
  const auto formula = [](double t) {
    return 0.4 * (std::exp((t - 24.1) / 0.8) - std::exp(-24.1 / 0.8) + 1 - std::exp(-t / 1.2));
  };
  constexpr int kShares = 20000;
  std::vector<double> ages;
  for (int i = 0; i < kShares; ++i) ages.push_back(law.quantile((i + 0.5) / kShares));
  for (const double age : {0.1, 1.0, 3.0, 12.0, 22.0, 23.5, 23.99}) {
    const auto ended = std::ranges::count_if(ages, [&](double other) { return other <= age; });
    EXPECT_NEAR(static_cast<double>(ended) / kShares, formula(age), 2.0 / kShares) << age;
  }
  // All that are left end at the deadline.
  EXPECT_EQ(law.quantile(1 - 0x1p-53), 24);
}

TEST(LifeLaws, RefuseArgumentsThatContradictEachOther) {
  const auto error = [](std::string_view text) { return error_of([&] { return law_of(text); }); };
  EXPECT_EQ(error("law=bathtub"), "no error");
  EXPECT_THAT(error("law=bathtub,a=0.8,tau1=1,tau2=1,b=24,deadline=24"),
              HasSubstr("F(deadline) is 1.6"));
  EXPECT_THAT(error("law=bathtub,life=3,a=0.4,tau1=1,tau2=1,b=24,deadline=24"),
              HasSubstr("with law=exponential or law=weibull"));
  EXPECT_THAT(error("shape=2"), HasSubstr("accepted: with law=weibull"));
  EXPECT_THAT(error("law=weibull,tau2=2"), HasSubstr("accepted: with law=bathtub"));
}

}  // namespace
}  // namespace rubato
