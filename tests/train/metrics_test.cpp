// Metrics of the user's own, and what goes by them.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/loop/observers.hpp>
#include <rubato/testing.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/recorded.hpp"
#include "train/plug_points.hpp"

namespace rubato {
namespace {

// These values, epoch after epoch.
OwnMetric given(std::string name, std::vector<std::optional<double>> values,
                MetricMode mode = MetricMode::min) {
  return {.name = std::move(name), .mode = mode, .value = [=](Training&, const EpochRecord& epoch) {
            return values.at(static_cast<std::size_t>(epoch.epoch.value()));
          }};
}

TrainOptions with_metrics(std::vector<OwnMetric> metrics) {
  TrainOptions options{.epochs = 6, .minibatch_size = 4, .learning_rate = 0.02, .threads = 2};
  options.metrics = std::move(metrics);
  return options;
}

Trainer measured_trainer(const TrainOptions& options) {
  return {test::tiny_objective(), test::trace_of({16}), options};
}

TEST(OwnMetric, IsInTheRecordOfEveryEpochThatHasIt) {
  Trainer trainer =
      measured_trainer(with_metrics({given("odd", {{}, 1, {}, 3, {}, 5}), test::weight_norm()}));
  const auto recorder = test::recorded(trainer);
  ASSERT_EQ(recorder->epochs.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    std::vector<std::string> names;
    for (const MetricValue& metric : recorder->epochs[i].metrics) names.push_back(metric.name);
    if (i % 2 == 1) {
      EXPECT_THAT(names, ElementsAre("odd", "weight-norm"));
      EXPECT_EQ(recorder->epochs[i].metrics.front().value, i);
    } else {
      EXPECT_THAT(names, ElementsAre("weight-norm"));
    }
  }
  const double norm = recorder->epochs.back().metrics.back().value;
  EXPECT_EQ(value_of(test::weight_norm(), recorder->epochs.back()), norm);
  EXPECT_GT(norm, 0);
}

TEST(OwnMetric, SeesTheTestOfItsEpoch) {
  std::vector<std::optional<double>> seen;
  TrainOptions options =
      with_metrics({{.name = "seen", .value = [&](Training&, const EpochRecord& epoch) {
                       seen.push_back(epoch.test ? std::optional(epoch.test->loss) : std::nullopt);
                       return std::optional(epoch.train_loss);
                     }}});
  Trainer trainer = measured_trainer(options);
  const auto recorder = test::recorded(trainer);
  ASSERT_EQ(seen.size(), recorder->epochs.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i], recorder->epochs[i].test->loss);
    EXPECT_EQ(recorder->epochs[i].metrics.front().value, recorder->epochs[i].train_loss);
  }
}

TEST(OwnMetric, IsGoneByAsOthersAre) {
  const OwnMetric metric =
      given("quality", {1, 5, {}, 4, std::numeric_limits<double>::quiet_NaN(), 6}, MetricMode::max);
  Trainer trainer = measured_trainer(with_metrics({metric}));
  const auto best = trainer.add_observer<BestWeights>(metric);
  trainer.add_observer<EarlyStopping>(metric, PatienceOptions{.patience = 2});
  trainer.fit();
  EXPECT_EQ(best->epoch(), EpochIndex{1});
  EXPECT_EQ(best->value(), 5);
  EXPECT_EQ(trainer.result().epochs, 5);
  EXPECT_EQ(trainer.result().stopped, "quality no longer improves");
}

TEST(OwnMetric, IsWhatAScheduleWatches) {
  const auto rates = [](MetricMode mode) {
    const OwnMetric metric = given("rising", {1, 2, 3, 4, 5, 6}, mode);
    TrainOptions options = with_metrics({metric});
    options.schedule = "plateau:patience=1,factor=0.5";
    options.watch = metric;
    Trainer trainer = measured_trainer(options);
    const auto recorder = test::recorded(trainer);
    return recorder->steps.back().learning_rate / recorder->steps.front().learning_rate;
  };
  EXPECT_EQ(rates(MetricMode::max), 1);
  EXPECT_LT(rates(MetricMode::min), 1);
}

TEST(OwnMetric, ThatThrowsLeavesTheStateOfTheLastStep) {
  TrainOptions options = with_metrics({});
  bool throws = true;
  options.metrics = {{.name = "fragile", .value = [&](Training&, const EpochRecord& epoch) {
                        if (throws && epoch.epoch.value() == 2) throw Error("no numbers today");
                        return std::optional(1.0);
                      }}};
  Trainer trainer = measured_trainer(options);
  EXPECT_EQ(error_of([&] { trainer.fit(); }), "no numbers today");
  ASSERT_TRUE(trainer.has_state());
  throws = false;
  Trainer second = measured_trainer(options);
  second.load_state(trainer.state());
  second.fit();
  Trainer whole = measured_trainer(options);
  whole.fit();
  EXPECT_EQ(test::difference_of(second, whole), std::nullopt);
  EXPECT_EQ(second.result().epochs, 6);
}

TEST(OwnMetric, IsRefusedWhereItCannotBeMeant) {
  const auto error = [](const TrainOptions& options) {
    return error_of([&] { return measured_trainer(options); });
  };
  const OwnMetric good = given("good", {1});
  EXPECT_EQ(error(with_metrics({good, good})),
            "two metrics are called good; accepted: different names");
  EXPECT_EQ(error(with_metrics({given("test-loss", {1})})),
            "two metrics are called test-loss; accepted: different names");
  EXPECT_THAT(error(with_metrics({given("a/b", {1})})), HasSubstr("a metric is called 'a/b'"));
  EXPECT_EQ(error(with_metrics({{.name = "empty"}})),
            "metric empty has no value; accepted: OwnMetric::value");
  TrainOptions watching = with_metrics({good});
  watching.watch = given("other", {1});
  EXPECT_THAT(error(watching), HasSubstr("metric other is watched, which the trainer does not"));
  watching.watch = given("good", {1}, MetricMode::max);
  EXPECT_EQ(error(watching),
            "metric good is watched as if it were better when it is larger; accepted: min");
  Trainer trainer = measured_trainer(with_metrics({}));
  EXPECT_THAT(error_of([&] { trainer.add_observer<BestWeights>(good); }),
              HasSubstr("metric good is watched, which the trainer does not have"));
  EXPECT_THAT(error_of([&] { trainer.add_observer<EarlyStopping>(good, PatienceOptions{}); }),
              HasSubstr("metric good is watched, which the trainer does not have"));
}

}  // namespace
}  // namespace rubato
