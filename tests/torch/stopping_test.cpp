#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/loop/observers.hpp>

#include "small_run.hpp"
#include "support.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::options_of;
using test::trainer_on;

TEST(PatienceReference, StopsWhereTheReferenceStops) {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/schedules.json");
  if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/schedules.json here";
  const auto run = nlohmann::json::parse(file).at("early_stopping");
  Patience patience({.patience = run.at("patience"), .delta = run.at("delta")});
  ASSERT_FALSE(run.at("metrics").empty());
  for (std::size_t i = 0; i < run.at("metrics").size(); ++i) {
    EXPECT_EQ(patience.is_over_after(run.at("metrics").at(i)), run.at("stop").at(i).get<bool>())
        << i;
  }
}

TEST(Stop, NeedsNoReason) {
  TorchTrainer trainer = trainer_on(Trace::constant(48), options_of("constant"));
  const auto stopper = trainer.add_observer<test::Recorder>(
      [](Training& training, const StepRecord&) { training.stop(""); });
  EXPECT_EQ(trainer.fit().stopped, "stopped");
  EXPECT_EQ(stopper->steps.size(), 1U);
  EXPECT_EQ(trainer.fit().steps, 1) << "and stays so";
}

TEST(Observers, HearEvaluationsAndStopTheTraining) {
  class Stopper : public Observer {
   public:
    void on_step(Training& training, const StepRecord& step) override {
      log += "s";
      if (step.plan.index.value() == 4) training.stop("enough");
    }
    void on_evaluate(Training&, const EpochRecord& epoch) override {
      log += epoch.test ? "v" : "?";
    }
    void on_epoch(Training&, const EpochRecord&) override { log += "e"; }
    std::string log;
  };
  TrainOptions options = options_of();
  options.epochs = 9;
  TorchTrainer trainer = trainer_on(Trace::constant(16), options);
  trainer.set_test(dataset());
  const auto stopper = trainer.add_observer<Stopper>();
  const TrainResult result = trainer.fit();
  EXPECT_EQ(stopper->log, "sssvessve");
  EXPECT_EQ(result.stopped, "enough");
  EXPECT_EQ(result.steps, 5);
}

// What observers hold on to is neither the trainer that they were added to nor anything that moves
// with it; and they live as long as whoever calls them.
TEST(Observers, StayGoodWhenTheTrainerIsMoved) {
  TrainOptions options = options_of("constant");
  options.epochs = 20;
  options.learning_rate = 1e-30;
  std::shared_ptr<BestWeights> best;
  const auto make = [&] {
    TorchTrainer trainer = trainer_on(Trace::constant(48), options);
    trainer.set_test(dataset());
    trainer.add_observer<EarlyStopping>(Metric::test_loss, PatienceOptions{.patience = 3});
    best = trainer.add_observer<BestWeights>(Metric::test_loss);
    auto elsewhere = std::make_unique<TorchTrainer>(std::move(trainer));
    return elsewhere;
  };
  std::unique_ptr<TorchTrainer> first = make();
  TorchTrainer second = trainer_on(Trace::constant(16), options_of());
  second = std::move(*first);
  first.reset();
  const TrainResult result = second.fit();
  EXPECT_EQ(result.epochs, 4);
  EXPECT_EQ(result.stopped, "test-loss no longer improves");
  EXPECT_EQ(best->epoch(), EpochIndex{0});
  const State state = second.state();
  EXPECT_TRUE(observer_state(state, "best-weights").has("epoch"));
  EXPECT_EQ(best.use_count(), 2);
  // Between two fits, too.
  TorchTrainer third = std::move(second);
  EXPECT_EQ(third.fit().epochs, 4);
}

// An observer goes on hearing of another training, and outlives both.
TEST(Observers, MayBeSharedByTrainers) {
  const auto recorder = std::make_shared<test::Recorder>();
  for (int i = 0; i < 2; ++i) {
    TorchTrainer trainer = trainer_on(Trace::constant(48), options_of());
    trainer.add_observer(recorder);
    trainer.fit();
  }
  EXPECT_EQ(recorder->steps.size(), 4U);
  EXPECT_EQ(recorder.use_count(), 1);
}

}  // namespace
}  // namespace rubato
