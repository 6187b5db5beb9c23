#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/steps/random.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

TEST(Sampler, InOrderIsTheOrderOfTheData) {
  for (const std::int64_t epoch : {0, 3}) {
    EXPECT_THAT(in_order().order({.epoch = EpochIndex{epoch}, .seed = 7, .samples = 4}),
                ElementsAre(0, 1, 2, 3));
  }
}

TEST(Sampler, WeightedDrawsInProportionAndWithReplacement) {
  constexpr std::int64_t kSamples = 40'000;
  // Weights 0, 1, 2, 5, again and again.
  constexpr std::array<double, 4> kWeights{0, 1, 2, 5};
  std::vector<double> weights(kSamples);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = kWeights[i % 4];
  const Sampler sampler = weighted(weights);
  std::array<double, 4> counts{};
  const auto drawn = sampler.order({.epoch = EpochIndex{1}, .seed = 3, .samples = kSamples});
  ASSERT_EQ(drawn.size(), weights.size());
  for (const std::int64_t sample : drawn) ++counts.at(static_cast<std::size_t>(sample % 4));
  EXPECT_EQ(counts[0], 0);
  for (std::size_t i = 1; i < 4; ++i) {
    const double share = kWeights.at(i) / 8;
    // Five standard errors.
    EXPECT_NEAR(counts.at(i) / kSamples, share, 5 * std::sqrt(share * (1 - share) / kSamples));
  }
}

TEST(Sampler, WeightedIsAFunctionOfSeedAndEpoch) {
  const Sampler sampler = weighted(std::vector<double>(20, 1));
  const EpochDraw draw{.epoch = EpochIndex{1}, .seed = 3, .samples = 20};
  const auto drawn = sampler.order(draw);
  EXPECT_EQ(sampler.order(draw), drawn);
  EXPECT_NE(sampler.order({.epoch = EpochIndex{2}, .seed = 3, .samples = 20}), drawn);
  EXPECT_NE(sampler.order({.epoch = EpochIndex{1}, .seed = 4, .samples = 20}), drawn);
  EXPECT_EQ(weighted({1, 2}).name, weighted({1, 2}).name);
  EXPECT_NE(weighted({1, 2}).name, weighted({2, 1}).name);
}

TEST(Sampler, WeightedDrawsTheOnlyOneThatHasAWeight) {
  const Sampler sampler = weighted({0, 0, 3, 0});
  EXPECT_THAT(sampler.order({.epoch = EpochIndex{}, .seed = 1, .samples = 4}),
              ElementsAre(2, 2, 2, 2));
}

TEST(Sampler, WeightsAreNumbersToDrawBy) {
  EXPECT_EQ(error_of([] {
              return weighted({1, -2});
            }),
            "sample 1 has the weight -2; accepted: finite numbers of at least 0");
  EXPECT_THAT(error_of([] { return weighted({std::numeric_limits<double>::quiet_NaN()}); }),
              HasSubstr("sample 0 has the weight nan"));
  EXPECT_THAT(error_of([] {
                return weighted({1, std::numeric_limits<double>::infinity()});
              }),
              HasSubstr("sample 1 has the weight inf"));
  for (const std::vector<double>& weights :
       {std::vector<double>{}, {0, 0}, std::vector<double>(2, 1e308)}) {
    EXPECT_THAT(error_of([&] { return weighted(weights); }), HasSubstr("have no sum to draw by"));
  }
  EXPECT_EQ(error_of([] {
              SampleOrder(3, 1, 42, weighted({1, 2}));
            }),
            "2 weights for 3 samples; accepted: one for each sample");
}

TEST(Sampler, WeightedInDataDrawsOnceTheDataAreRead) {
  const OwnSamplers none("sampler", sampler_names);
  const Sampler column = make_sampler("weighted:column=w", none);
  EXPECT_EQ(column.weights.value().column, "w");
  EXPECT_EQ(make_sampler("weighted:balanced", none).weights.value().column, "");
  EXPECT_FALSE(make_sampler("in-order", none).weights);
  EXPECT_EQ(
      error_of([&] { SampleOrder(3, 1, 42, column); }),
      "sampler weighted:column=w: the weights are in the data of a run; accepted: weighted()");
  EXPECT_EQ(error_of([&] { return make_sampler("weighted", none); }),
            "weighted needs a 'column'; accepted: weighted:column=weight");
  EXPECT_EQ(error_of([&] { return make_sampler("weighted:balanced,by=2", none); }),
            "weighted:balanced takes no arguments, but has 'by'");
}

Sampler of(std::vector<std::int64_t> list) {
  return {.name = "mine", .order = [list = std::move(list)](const EpochDraw&) { return list; }};
}

TEST(Sampler, GivesAnIndexForEachSample) {
  EXPECT_EQ(error_of([] {
              SampleOrder(3, 1, 42, of({0, 1}));
            }),
            "sampler mine gave 2 indices for epoch 1; accepted: as many as there are samples, 3");
  EXPECT_EQ(error_of([] {
              SampleOrder(3, 1, 42, of({0, 1, 3}));
            }),
            "sampler mine gave the index 3 for epoch 1; accepted: 0 to 2");
  EXPECT_EQ(error_of([] {
              SampleOrder(3, 1, 42, of({0, -1, 2}));
            }),
            "sampler mine gave the index -1 for epoch 1; accepted: 0 to 2");
  EXPECT_EQ(error_of([] { SampleOrder(3, 1, 42, of({2, 2, 0})); }), "no error");
}

// Its lists one behind the other, in steps that go on in the next epoch.
TEST(Sampler, OrdersTheSamplesOfSteps) {
  const Sampler counting{.name = "turned", .order = [](const EpochDraw& draw) {
                           std::vector<std::int64_t> list(static_cast<std::size_t>(draw.samples));
                           for (std::size_t i = 0; i < list.size(); ++i) {
                             list[i] =
                                 (static_cast<std::int64_t>(i) + draw.epoch.value()) % draw.samples;
                           }
                           return list;
                         }};
  SampleOrder order(5, 2, 42, counting);
  // The last sample of epoch 1, and the first of epoch 2.
  const StepPlan step{.index = {},
                      .batch_size = 4,
                      .cores = 1,
                      .first_minibatch = MinibatchIndex{1},
                      .minibatches = 2,
                      .shift = 0};
  order.prepare(EpochIndex{1}, step);
  EXPECT_THAT(order.minibatch(step, MinibatchIndex{1}), ElementsAre(3, 4));
  EXPECT_THAT(order.minibatch(step, MinibatchIndex{2}), ElementsAre(0, 2));
  // What was drawn when it was made.
  order.prepare(EpochIndex{0}, step);
  EXPECT_THAT(order.minibatch(step, MinibatchIndex{1}), ElementsAre(2, 3));
}

}  // namespace
}  // namespace rubato
