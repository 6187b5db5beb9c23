// Functions whose bits are the same everywhere: against values that were computed with 60 digits,
// and against the C library's within their promise.

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include <gmock/gmock.h>

#include "base/core/portable_math.hpp"

namespace rubato {
namespace {

constexpr double kPositiveInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeastNumber = std::numeric_limits<double>::denorm_min();

// In units in the last place of the second.
double units_between(double a, double b) {
  if (a == b) return 0;
  const double size = std::fabs(b);
  return std::fabs(a - b) / (std::nextafter(size, kPositiveInfinity) - size);
}

TEST(ExactFunctions, AreRoundedCorrectly) {
  EXPECT_EQ(exact::exp(0x1.999999999999ap-4), 0x1.1aec7b35a00d4p+0);
  EXPECT_EQ(exact::exp(0x1.0000000000000p+0), 0x1.5bf0a8b145769p+1);
  EXPECT_EQ(exact::exp(-0x1.6666666666666p-1), 0x1.fc80db9dd5542p-2);
  EXPECT_EQ(exact::exp(0x1.5798ee2308c3ap-28), 0x1.00000015798eep+0);
  EXPECT_EQ(exact::exp(-0x1.5e20000000000p+9), 0x1.af5fe9a485c8ep-1011);
  EXPECT_EQ(exact::exp(0x1.edd2f1a9fbe77p+6), 0x1.1428e1cbc0143p+178);
  EXPECT_EQ(exact::exp(-0x1.7210000000000p+9), 0x0.000000000004bp-1022);
  EXPECT_EQ(exact::log(0x1.999999999999ap-4), -0x1.26bb1bbb55515p+1);
  EXPECT_EQ(exact::log(0x1.0000000000001p+0), 0x1.fffffffffffffp-53);
  EXPECT_EQ(exact::log(0x1.fffffffffffffp-1), -0x1.0000000000000p-53);
  EXPECT_EQ(exact::log(0x1.8000000000000p+1), 0x1.193ea7aad030bp+0);
  EXPECT_EQ(exact::log(0x0.012688b70e62bp-1022), -0x1.64e69394d9508p+9);
  EXPECT_EQ(exact::log(0x1.e42d130773b76p+1023), 0x1.62dd08fdc6f88p+9);
  EXPECT_EQ(exact::log(0x1.6a09e667f3bcdp-1), -0x1.62e42fefa39eep-2);
  EXPECT_EQ(exact::log1p(0x1.12e0be826d695p-30), 0x1.12e0be801f1d9p-30);
  EXPECT_EQ(exact::log1p(-0x1.3333333333333p-2), -0x1.6d3c324e13f4ep-2);
  EXPECT_EQ(exact::log1p(0x1.0000000000000p-1), 0x1.9f323ecbf984cp-2);
  EXPECT_EQ(exact::log1p(-0x1.70ef54646d497p-57), -0x1.70ef54646d497p-57);
  EXPECT_EQ(exact::log1p(0x1.81cd6c8b43958p+13), 0x1.2d79ff745b2fdp+3);
  EXPECT_EQ(exact::log1p(-0x1.ffffffff24190p-1), -0x1.7069e293f4c5cp+4);
  EXPECT_EQ(exact::cos_of_turns(0x1.999999999999ap-4), 0x1.9e3779b97f4a8p-1);
  EXPECT_EQ(exact::cos_of_turns(-0x1.3333333333333p-2), -0x1.3c6ef372fe94ep-2);
  EXPECT_EQ(exact::cos_of_turns(0x1.ffffffdda3e83p-3), 0x1.afc6f6fe43a20p-28);
  EXPECT_EQ(exact::cos_of_turns(0x1.3c6ef372fe950p-1), -0x1.798869e0de832p-1);
  EXPECT_EQ(exact::cos_of_turns(0x1.3484000000000p+10), 0x1.d906bcf328d46p-1);
  EXPECT_EQ(exact::pow(0x1.999999999999ap-4, 0x1.8000000000000p+1), 0x1.0624dd2f1a9fdp-10);
  EXPECT_EQ(exact::pow(0x1.f0a3d70a3d70ap-1, 0x1.4c00000000000p+5), 0x1.21492200a4845p-2);
  EXPECT_EQ(exact::pow(0x1.000001ad7f29bp+0, -0x1.c9c3800000000p+24), 0x1.97db10c355ba7p-5);
  EXPECT_EQ(exact::pow(0x1.7e43c8800759cp+996, -0x1.0cccccccccccdp+0), 0x0.000000c1069cdp-1022);
  EXPECT_EQ(exact::pow(0x1.0000000000000p-1, 0x1.3333333333333p-2), 0x1.9fdf8bcce533ep-1);
  EXPECT_EQ(exact::pow(0x1.c000000000000p+2, -0x1.0000000000000p+1), 0x1.4e5e0a72f0539p-6);
}

// Those of a million and a half each whose results lie next to the middle of two numbers, within a
// millionth of their distance.
TEST(ExactFunctions, AreRoundedCorrectlyNextToAMiddle) {
  EXPECT_EQ(exact::exp(-0x1.b45258c65adp-4), 0x1.cc43a5df33b69p-1);
  EXPECT_EQ(exact::exp(0x1.fc684016e4678p-2), 0x1.a49828a5234ep+0);
  EXPECT_EQ(exact::exp(0x1.28a780e632a18p-3), 0x1.27e6e6d3f156dp+0);
  EXPECT_EQ(exact::exp(0x1.0abbb9a400a92p+8), 0x1.c252461c50eb6p+384);
  EXPECT_EQ(exact::exp(-0x1.524503f6f29f4p+7), 0x1.fc7cd2a86a40cp-245);
  EXPECT_EQ(exact::exp(0x1.2af48f0d66488p+8), 0x1.3b7741cf3dde6p+431);
  EXPECT_EQ(exact::exp(-0x1.627bec317be2ep+9), 0x0.908652c2799d3p-1022);
  EXPECT_EQ(exact::exp(-0x1.623a36705a71p+9), 0x0.f17c4cf537d9ep-1022);
  EXPECT_EQ(exact::exp(-0x1.625a583f9baadp+9), 0x0.bbe00c4d40fa3p-1022);
  EXPECT_EQ(exact::exp(-0x1.62590a898e867p+9), 0x0.bdcc5d0f6937ap-1022);
  EXPECT_EQ(exact::exp(-0x1.6268d2be82e96p+9), 0x0.a7c826c825a89p-1022);
  EXPECT_EQ(exact::exp(-0x1.626a199b455d6p+9), 0x0.a61dd4e211b38p-1022);
  EXPECT_EQ(exact::exp(-0x1.625a5154c872fp+9), 0x0.bbea33bface9ap-1022);
  EXPECT_EQ(exact::exp(-0x1.624e4c511e3a4p+9), 0x0.ce6a699cf0389p-1022);
  EXPECT_EQ(exact::exp(-0x1.6244eeed1de2ep+9), 0x0.de15701c6592ap-1022);
  EXPECT_EQ(exact::log(0x1.f672d0f9d91c5p+0), 0x1.593fe878e42p-1);
  EXPECT_EQ(exact::log(0x1.3591f6787bcbbp+0), 0x1.8522908c7e002p-3);
  EXPECT_EQ(exact::log(0x1.4a5fe3270819ap-1), -0x1.c09ca7371f401p-2);
  EXPECT_EQ(exact::log(0x1.6b9bf153d9b48p+0), 0x1.6752e056e14p-2);
  EXPECT_EQ(exact::log(0x1.176a74c37c343p+0), 0x1.667f429f8307fp-4);
  EXPECT_EQ(exact::log(0x1.18e52fa7baf53p+0), 0x1.7c2079fb7445dp-4);
  EXPECT_EQ(exact::log(0x1.dfa299d53de7dp-1), -0x1.0b76da5b61cc6p-4);
  EXPECT_EQ(exact::log1p(-0x1.e4e948bd454f4p-9), -0x1.e5cf7adcd99e8p-9);
  EXPECT_EQ(exact::log1p(-0x1.1d04eac77f361p-7), -0x1.1e4418e34a279p-7);
  EXPECT_EQ(exact::log1p(-0x1.06b66c250ba88p-10), -0x1.06d82526a65e3p-10);
  EXPECT_EQ(exact::cos_of_turns(0x1.d3723f1e8f732p-4), 0x1.81eae667f0466p-1);
  EXPECT_EQ(exact::cos_of_turns(0x1.bbd96b89235dap-3), 0x1.a9172581fda0cp-3);
  EXPECT_EQ(exact::cos_of_turns(0x1.54911478d016fp-1), -0x1.0428fa0e4685fp-1);
  EXPECT_EQ(exact::cos_of_turns(0x1.a0327104c1f11p-5), 0x1.e62257bee2c27p-1);
  EXPECT_EQ(exact::pow(0x1.b097eb9a990d6p+1, 0x1.3p+0), 0x1.0fc6f7cc19f41p+2);
  EXPECT_EQ(exact::pow(0x1.8fbfe9d8b023bp+2, 0x1.3p+0), 0x1.19cbbe930ead5p+3);
  EXPECT_EQ(exact::pow(0x1.896c503ec97a6p+5, 0x1.3p+0), 0x1.985a9958073acp+6);
  EXPECT_EQ(exact::pow(0x1.e6419c1ba291dp-1, 0x1.4cp+5), 0x1.e176bbaad28e5p-4);
  EXPECT_EQ(exact::pow(0x1.f1c252c3e9eadp-1, 0x1.4cp+5), 0x1.3d9be942e7cep-2);
  // Of subnormal results, those that the second double rounds down.
  EXPECT_EQ(exact::exp(-0x1.627e4ece0d81cp+9), 0x0.8ddb4421e5457p-1022);
  EXPECT_EQ(exact::exp(-0x1.62579cfc9babdp+9), 0x0.bfed6fb19cf4bp-1022);
}

TEST(ExactFunctions, AnswerWhatIsNotDefined) {
  EXPECT_TRUE(std::isnan(exact::exp(kNotANumber)));
  EXPECT_EQ(exact::exp(kPositiveInfinity), kPositiveInfinity);
  EXPECT_EQ(exact::exp(-kPositiveInfinity), 0);
  EXPECT_EQ(exact::exp(710), kPositiveInfinity);
  EXPECT_EQ(exact::exp(-746), 0);
  EXPECT_EQ(exact::exp(-745), kLeastNumber) << "rounded once, at the end";
  EXPECT_EQ(exact::log(0), -kPositiveInfinity);
  EXPECT_EQ(exact::log(kPositiveInfinity), kPositiveInfinity);
  EXPECT_TRUE(std::isnan(exact::log(-1)));
  EXPECT_TRUE(std::isnan(exact::log(kNotANumber)));
  EXPECT_EQ(exact::log1p(-1), -kPositiveInfinity);
  EXPECT_TRUE(std::isnan(exact::log1p(-2)));
  EXPECT_EQ(exact::log1p(1e-300), 1e-300);
  for (const double x :
       {-kPositiveInfinity, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, kPositiveInfinity, kNotANumber}) {
    for (const double y : {-kPositiveInfinity, -3.0, -2.0, -0.5, 0.0, 0.5, 2.0, 3.0,
                           kPositiveInfinity, kNotANumber}) {
      const double expected = std::pow(x, y);
      const double found = exact::pow(x, y);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found)) << x << '^' << y << " is " << found;
      } else if (std::isinf(expected) || expected == 0 || expected == 1) {
        EXPECT_EQ(found, expected) << x << '^' << y;
        EXPECT_EQ(std::signbit(found), std::signbit(expected)) << x << '^' << y;
      } else {
        EXPECT_LE(units_between(found, expected), 1) << x << '^' << y;
      }
    }
  }
}

TEST(ExactFunctions, AreExactWhereTheResultIs) {
  EXPECT_EQ(exact::pow(0.5, 3), 0.125);
  EXPECT_EQ(exact::pow(2, -1074), kLeastNumber);
  EXPECT_EQ(exact::pow(-3, 5), -243);
  EXPECT_EQ(exact::pow(4, 0.5), 2);
  EXPECT_EQ(exact::log(1), 0);
  EXPECT_EQ(exact::exp(0), 1);
  EXPECT_EQ(exact::cos_of_turns(0), 1);
  EXPECT_EQ(exact::cos_of_turns(0.25), 0);
  EXPECT_EQ(exact::cos_of_turns(-7.5), -1);
}

// The C library's are within a unit of the truth, so that these are within two of them.
TEST(ExactFunctions, AreThoseOfTheCLibraryButForTheLastBit) {
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 20'000; ++i) {
    const double x = std::ldexp(0.5 + unit(generator), static_cast<int>(generator() % 200) - 100);
    const double small =
        (unit(generator) - 0.5) * std::ldexp(1, -static_cast<int>(generator() % 60));
    const double y = 8 * (unit(generator) - 0.5);
    EXPECT_LE(units_between(exact::log(x), std::log(x)), 1) << x;
    EXPECT_LE(units_between(exact::log1p(small), std::log1p(small)), 1) << small;
    EXPECT_LE(units_between(exact::exp(100 * y), std::exp(100 * y)), 1) << 100 * y;
    EXPECT_LE(units_between(exact::pow(x, y), std::pow(x, y)), 1) << x << '^' << y;
    EXPECT_LE(units_between(quick::log(x), std::log(x)), 3) << x;
    const double turns = unit(generator);
    const auto [cosine, sine] = quick::direction(turns);
    EXPECT_NEAR(exact::cos_of_turns(turns), std::cos(2 * std::numbers::pi * turns), 1e-15);
    EXPECT_NEAR(cosine, std::cos(2 * std::numbers::pi * turns), 1e-15);
    EXPECT_NEAR(sine, std::sin(2 * std::numbers::pi * turns), 1e-15);
  }
}

TEST(QuickFunctions, KeepNaN) {
  EXPECT_TRUE(std::isnan(quick::log(kNotANumber)));
  EXPECT_TRUE(std::isnan(quick::log(-kNotANumber)));
  EXPECT_EQ(quick::log(1), 0);
}

TEST(QuickFunctions, KnowTheQuartersOfATurn) {
  for (const int turns : {0, -3, 5}) {
    const auto [cosine, sine] = quick::direction(turns + 0.25);
    EXPECT_EQ(cosine, 0);
    EXPECT_EQ(sine, 1);
    EXPECT_EQ(quick::direction(turns + 0.5).cosine, -1);
    EXPECT_EQ(quick::direction(turns + 0.75).sine, -1);
    EXPECT_EQ(quick::direction(turns).cosine, 1);
  }
}

}  // namespace
}  // namespace rubato
