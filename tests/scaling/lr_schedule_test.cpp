#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/numbers/lr_schedule.hpp>

#include "numbers/scaling/lbsgd_rule.hpp"
#include "numbers/scaling/lr_schedules.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using nlohmann::json;
using testing::ElementsAreArray;

std::vector<double> factors_of(std::string_view text, const std::vector<double>& positions) {
  const auto schedule = ScheduleChoice(text).make({});
  std::vector<double> factors;
  factors.reserve(positions.size());
  for (const double x : positions) factors.push_back(schedule->factor(x));
  return factors;
}

void expect_factors(std::string_view text, const std::vector<double>& positions,
                    const std::vector<double>& expected) {
  const auto factors = factors_of(text, positions);
  ASSERT_EQ(factors.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(factors[i], expected[i], 1e-12) << text << " at " << positions[i];
  }
}

TEST(LrSchedule, HasTheFormulas) {
  expect_factors("constant", {0, 7}, {1, 1});
  expect_factors("constant:value=0.5", {0, 7}, {0.5, 0.5});
  expect_factors("step:every=3,gamma=0.5", {0, 2, 3, 5.9, 6}, {1, 1, 0.5, 0.5, 0.25});
  expect_factors("multi-step:at=2/5,gamma=0.1", {0, 1.9, 2, 4, 5, 9}, {1, 1, 0.1, 0.1, 0.01, 0.01});
  expect_factors("polynomial:total=4,power=2", {0, 1, 2, 4, 5}, {1, 0.5625, 0.25, 0, 0});
  expect_factors("polynomial:total=4,power=1,floor=0.2", {0, 2, 4}, {1, 0.6, 0.2});
  expect_factors("cosine:total=4", {0, 1, 2, 4, 5}, {1, 0.5 + std::sqrt(0.125), 0.5, 0, 0});
  expect_factors("cosine:total=4,floor=0.5", {0, 2, 4}, {1, 0.75, 0.5});
  expect_factors("exponential:gamma=0.9", {0, 1, 2.5}, {1, 0.9, std::pow(0.9, 2.5)});
  expect_factors("warmup:length=4", {0, 1, 4, 4.5, 9}, {0, 0.25, 1, 1, 1});
  expect_factors("warmup:length=4,start=0.2", {0, 2, 4}, {0.2, 0.6, 1});
  expect_factors("warmup-cosine:warmup=2,total=6", {0, 1, 2, 4, 6}, {0, 0.5, 1, 0.5, 0});
}

TEST(LrSchedule, ChainsMultiplyAndMayBeginLater) {
  expect_factors("warmup:length=2+step:every=2,gamma=0.5", {0, 1, 2, 4}, {0, 0.5, 0.5, 0.25});
  // The common warm-up and then cosine, as one and as a chain.
  const std::vector<double> positions{0, 0.5, 1, 2, 3, 4.5, 6, 7};
  expect_factors("warmup:length=2+cosine:total=4,after=2", positions,
                 factors_of("warmup-cosine:warmup=2,total=6", positions));
}

TEST(LrSchedule, OfTheUsersOwn) {
  const LambdaSchedule schedule([](double x) { return 1 / (1 + x); });
  EXPECT_EQ(schedule.factor(3), 0.25);
  EXPECT_FALSE(schedule.watches());
}

TEST(LrSchedule, RejectsWhatIsWrong) {
  const auto error = [](std::string_view text) {
    return error_of([&] { return ScheduleChoice(text).make({}); });
  };
  EXPECT_THAT(error("cosin:total=4"),
              HasSubstr("unknown schedule 'cosin'; did you mean 'cosine'?"));
  EXPECT_EQ(error("cosine"), "cosine needs a 'total'; accepted: cosine:total=90");
  EXPECT_EQ(error("step:every=0"),
            "step: every: '0' is out of range; accepted: a number greater than 0");
  EXPECT_THAT(error("cosine:total=4,gama=1"), HasSubstr("unknown argument of cosine 'gama'"));
  EXPECT_EQ(error("multi-step:at=5/2"),
            "multi-step: at: milestones descend; accepted: ascending ones");
  EXPECT_THAT(error("warmup-cosine:warmup=5,total=5"),
              HasSubstr("total: 5 is not above the warm-up's 5"));
  EXPECT_THAT(error("constant:after=3"), HasSubstr("unknown argument of constant 'after'"));
  EXPECT_THAT(error("plateau:after=3"), HasSubstr("unknown argument of plateau 'after'"));
  EXPECT_THAT(error("plateau:mode=low"), HasSubstr("plateau: mode: unknown value 'low'"));
  EXPECT_THAT(error("warmup:length=2+"), HasSubstr("unknown schedule ''"));
}

TEST(LrSchedule, PositionIsWhatTheUnitCounts) {
  TrainingProgress progress{.epochs = 2,
                            .epoch_samples = 600,
                            .dataset_size = 2400,
                            .steps = 30,
                            .samples = 4000,
                            .iterations = 55.5};
  EXPECT_EQ(position_of(progress, ScheduleUnit::epochs), 2.25);
  EXPECT_EQ(position_of(progress, ScheduleUnit::whole_epochs), 2);
  EXPECT_EQ(position_of(progress, ScheduleUnit::steps), 30);
  EXPECT_EQ(position_of(progress, ScheduleUnit::samples), 4000);
  EXPECT_EQ(position_of(progress, ScheduleUnit::iterations), 55.5);
  progress.epoch_samples = 0;
  EXPECT_EQ(position_of(progress, ScheduleUnit::epochs), 2);
}

// What falls at whole numbers falls there and not before.
TEST(LrSchedule, StepsDoNotFallWithinAnEpoch) {
  for (const std::string text : {"step:every=1,gamma=0.5", "multi-step:at=1/2,gamma=0.5"}) {
    const auto schedule = ScheduleChoice(text).make({});
    TrainingProgress progress{.dataset_size = 60'000};
    for (progress.epochs = 0; progress.epochs < 3; ++progress.epochs) {
      for (const std::int64_t samples : {0, 32, 30'000, 59'968, 59'999}) {
        progress.epoch_samples = samples;
        EXPECT_EQ(schedule->factor(position_of(progress, ScheduleUnit::epochs)),
                  std::pow(0.5, static_cast<double>(progress.epochs)))
            << text << " after " << samples;
      }
    }
  }
}

TEST(LrSchedule, ARateOfZeroForAWholeEpochIsRefused) {
  const auto error = [](const std::string& text, ScheduleUnit unit) {
    return error_of([&] { require_rate(*ScheduleChoice(text).make({}), text, unit); });
  };
  const std::string example = "warmup:length=1+step:every=2";
  EXPECT_EQ(error(example, ScheduleUnit::epochs), "no error");
  EXPECT_EQ(error(example, ScheduleUnit::whole_epochs),
            "the schedule warmup:length=1+step:every=2 has a rate of 0 for the whole first epoch "
            "where whole epochs are counted; accepted: the unit epochs, which counts their "
            "fractions, or a start above 0");
  EXPECT_EQ(error("warmup:length=2,start=0.1", ScheduleUnit::whole_epochs), "no error");
  EXPECT_EQ(error("cosine:total=3", ScheduleUnit::whole_epochs), "no error");
}

// Metrics that rise from epoch to epoch: good for an accuracy, bad for a loss.
TEST(LrSchedule, PlateauFollowsItsMetric) {
  const auto falls = [](const std::string& text, std::optional<Metric> watched) {
    const auto schedule = ScheduleChoice(text).make(watched);
    for (const double metric : {0.5, 0.6, 0.7}) schedule->observe(metric);
    return schedule->factor(0) < 1;
  };
  EXPECT_TRUE(falls("plateau:patience=1", {}));
  EXPECT_TRUE(falls("plateau:patience=1", Metric::test_loss));
  EXPECT_TRUE(falls("plateau:patience=1", Metric::train_loss));
  EXPECT_FALSE(falls("plateau:patience=1", Metric::test_accuracy));
  EXPECT_FALSE(falls("plateau:patience=1,mode=max", Metric::test_accuracy));
  EXPECT_FALSE(falls("plateau:patience=1,mode=max", {}));
  EXPECT_FALSE(falls("warmup:length=1,start=1+plateau:patience=1", Metric::test_accuracy));
  const auto error = [](const std::string& text, Metric watched) {
    return error_of([&] { return ScheduleChoice(text).make(watched); });
  };
  EXPECT_EQ(error("plateau:mode=min", Metric::test_accuracy),
            "plateau: mode: test-accuracy is watched, which is better when it is larger; accepted: "
            "max");
  EXPECT_EQ(
      error("step:every=1+plateau:mode=max", Metric::test_loss),
      "plateau: mode: test-loss is watched, which is better when it is smaller; accepted: min");
}

TEST(ReduceOnPlateau, WaitsReducesAndCoolsDown) {
  ReduceOnPlateau schedule({.mode = MetricMode::max,
                            .factor = 0.5,
                            .patience = 1,
                            .threshold = 0,
                            .threshold_mode = ThresholdMode::absolute,
                            .cooldown = 2,
                            .floor = 0.3});
  std::vector<double> factors;
  for (const double metric : {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 0.6, 0.6}) {
    schedule.observe(metric);
    factors.push_back(schedule.factor(0));
  }
  // Two without improvement reduce; two of cooldown do not count; then it waits again.
  EXPECT_THAT(factors, ElementsAreArray({1., 1., .5, .5, .5, .5, .5, .5, .3, .3}));
}

// A share of the best is a distance, whatever its sign: log-likelihoods as losses are below 0.
TEST(ReduceOnPlateau, MeasuresAShareOfANegativeBest) {
  const auto reduces_after = [](MetricMode mode, double best, double then) {
    ReduceOnPlateau schedule({.mode = mode, .patience = 0, .threshold = 0.1});
    schedule.observe(best);
    schedule.observe(then);
    return schedule.factor(0) < 1;
  };
  EXPECT_TRUE(reduces_after(MetricMode::min, -1, -1.05)) << "better by less than a tenth";
  EXPECT_FALSE(reduces_after(MetricMode::min, -1, -1.2));
  EXPECT_TRUE(reduces_after(MetricMode::min, -1, -0.95)) << "worse";
  EXPECT_TRUE(reduces_after(MetricMode::max, -1, -0.95)) << "better by less than a tenth";
  EXPECT_FALSE(reduces_after(MetricMode::max, -1, -0.8));
  EXPECT_TRUE(reduces_after(MetricMode::max, -1, -1.05)) << "worse";
}

TEST(ReduceOnPlateau, RefusesADamagedState) {
  const auto schedule = ScheduleChoice("warmup:length=2+plateau:patience=2").make({});
  EXPECT_TRUE(schedule->watches());
  EXPECT_THAT(error_of([&] {
                load_numbers(*schedule, std::vector<double>{0, 9}, "the schedule");
              }),
              HasSubstr("damaged"));
}

class Reference : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(RUBATO_SHARED_DIR "/reference/schedules.json");
    if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/schedules.json here";
    all_ = json::parse(file);
  }

  json all_;
};

TEST_F(Reference, LbsgdWarmups) {
  ASSERT_FALSE(all_.at("lbsgd_warmup").empty());
  for (const json& run : all_.at("lbsgd_warmup")) {
    const std::string strategy = run.at("strategy");
    const std::int64_t scale = run.at("batch_scale");
    SCOPED_TRACE(strategy);
    const LbsgdOptions options{.warmup = parse_choice("warm-up", strategy, kLbsgdWarmups),
                               .warmup_epochs = run.at("warmup_epochs"),
                               .begin_epoch = run.at("begin_epoch"),
                               .updates_per_epoch = run.at("updates_per_epoch")};
    LbsgdRule rule(options);
    for (const json& expected : run.at("micro_batch_count_and_multiplier")) {
      const double count = expected.at(0);
      const double multiplier = expected.at(1);
      // The function, and the rule of steps of that many micro-batches.
      EXPECT_NEAR(lbsgd_factor(options.warmup, static_cast<double>(scale), count,
                               options.warmup_epochs * options.updates_per_epoch),
                  multiplier, 1e-9 * multiplier);
      const Rates rates = rule.rates({.batch_size = 32 * scale,
                                      .minibatch_size = 32,
                                      .reference_batch_size = 32,
                                      .base_learning_rate = 0.1});
      EXPECT_NEAR(rates.learning_rate, 0.1 * multiplier, 1e-9 * multiplier);
      EXPECT_EQ(rates.update_rate, rates.learning_rate);
    }
  }
}

TEST_F(Reference, LbsgdLayerFactors) {
  ASSERT_FALSE(all_.at("lbsgd_lars").empty());
  LbsgdRule rule({.warmup = LbsgdWarmup::lars});
  EXPECT_TRUE(rule.needs().parameter_norms);
  std::vector<ParameterNorms> layers;
  for (const json& layer : all_.at("lbsgd_lars")) {
    layers.push_back({.weight_square = layer.at("weight_sq"),
                      .gradient_square = layer.at("grad_sq"),
                      .weight_decay = layer.at("wd")});
  }
  const Rates rates = rule.rates({.base_learning_rate = 0.1, .layers = layers});
  EXPECT_EQ(rates.update_rate, 0.1);
  ASSERT_EQ(rates.layer_factors.size(), layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double expected = all_.at("lbsgd_lars").at(i).at("multiplier");
    EXPECT_NEAR(rates.layer_factors[i], expected, 1e-9 * expected);
  }
}

// `expected` are the rates at 0, 1, 2, ..., relative to `base`.
void expect_values(const std::string& text, const json& expected, double base = 1) {
  const auto schedule = ScheduleChoice(text).make({});
  ASSERT_FALSE(expected.empty());
  double x = 0;
  for (const json& value : expected) {
    EXPECT_NEAR(base * schedule->factor(x++), value.get<double>(), 1e-12) << text;
  }
}

TEST_F(Reference, SchedulesByPosition) {
  ASSERT_FALSE(all_.at("poly").empty());
  for (const json& run : all_.at("poly")) {
    expect_values(fmt::format("polynomial:total={},power={}", run.at("max_update").get<double>(),
                              run.at("power").get<double>()),
                  run.at("values"), run.at("base_lr"));
  }
  const json& linear = all_.at("warmup_linear");
  expect_values(fmt::format("warmup:length={}", linear.at("warmup_epochs").get<double>()),
                linear.at("factors"));
  const json& cosine = all_.at("warmup_cosine");
  expect_values(
      fmt::format("warmup-cosine:warmup={},total={}", cosine.at("warmup_epochs").get<double>(),
                  cosine.at("epochs").get<double>()),
      cosine.at("factors"));
}

TEST_F(Reference, Plateau) {
  const json& run = all_.at("reduce_on_plateau");
  ReduceOnPlateau schedule({.factor = run.at("factor"),
                            .patience = run.at("patience"),
                            .threshold = run.at("threshold")});
  const double lr = run.at("base_lr");
  ASSERT_FALSE(run.at("metrics").empty());
  for (std::size_t i = 0; i < run.at("metrics").size(); ++i) {
    schedule.observe(run.at("metrics").at(i));
    const double expected = run.at("lr_after").at(i);
    EXPECT_NEAR(lr * schedule.factor(0), expected, 1e-9 * expected) << i;
  }
}

}  // namespace
}  // namespace rubato
