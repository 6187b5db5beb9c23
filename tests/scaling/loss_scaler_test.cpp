#include <limits>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/numbers/loss_scaler.hpp>

#include "scaling/resume.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

std::vector<double> scales(LossScaler& scaler, const std::vector<bool>& finite) {
  std::vector<double> scales;
  for (const bool good : finite) {
    scaler.update(good);
    scales.push_back(scaler.scale());
  }
  return scales;
}

// torch.cuda.amp.GradScaler with these arguments.
TEST(LossScaler, GrowsAndBacksOffAsGradScalerDoes) {
  LossScaler scaler({.initial = 8, .growth = 2, .backoff = 0.5, .interval = 3});
  EXPECT_EQ(scaler.scale(), 8);
  EXPECT_THAT(scales(scaler, {true, true, true, true, true, false, true, true, true}),
              ElementsAre(8, 8, 16, 16, 16, 8, 8, 8, 16));
}

TEST(LossScaler, HasGradScalersDefaults) {
  LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 32768);
  for (int i = 0; i < 1999; ++i) scaler.update(true);
  EXPECT_EQ(scaler.scale(), 32768);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 65536);
}

TEST(LossScaler, IsExhaustedBelowTheSmallest) {
  LossScaler scaler({.initial = 4, .smallest = 1});
  EXPECT_THAT(scales(scaler, {false, false}), ElementsAre(2, 1));
  EXPECT_FALSE(scaler.exhausted());
  scaler.update(false);
  EXPECT_TRUE(scaler.exhausted());
}

TEST(LossScaler, StaysAFloat) {
  LossScaler scaler({.initial = 2e38, .interval = 1});
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 2e38);
}

TEST(LossScaler, GoesOnFromItsState) {
  const std::vector<bool> course{true, false, true, true, true, true, true, false, true};
  test::expect_resumes(
      course.size(),
      [] { return std::make_unique<LossScaler>(LossScaleOptions{.initial = 8, .interval = 3}); },
      [&](LossScaler& scaler, std::size_t i) {
        scaler.update(course[i]);
        return std::vector<double>{scaler.scale()};
      });
  LossScaler scaler;
  for (const std::vector<double>& damaged : std::vector<std::vector<double>>{
           {}, {1}, {0, 0}, {-1, 0}, {std::numeric_limits<double>::quiet_NaN(), 0}, {1, -1}}) {
    EXPECT_NE(error_of([&] { load_numbers(scaler, damaged, "the loss scale"); }), "no error");
  }
}

TEST(LossScaler, RefusesOptionsOutOfRange) {
  const auto error = [](const LossScaleOptions& options) {
    return error_of([&] { const LossScaler scaler(options); });
  };
  EXPECT_THAT(error({.initial = 0}), HasSubstr("scale 0: accepted are values above 0"));
  EXPECT_THAT(error({.growth = 0.5}), HasSubstr("growth 0.5"));
  EXPECT_THAT(error({.backoff = 1}), HasSubstr("backoff 1"));
  EXPECT_THAT(error({.interval = 0}), HasSubstr("interval 0"));
  EXPECT_THAT(error({.initial = 1, .smallest = 2}), HasSubstr("smallest scale 2"));
}

}  // namespace
}  // namespace rubato
