#include <cmath>
#include <fstream>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/train/best_weights.hpp>
#include <rubato/train/early_stopping.hpp>

#include "small_run.hpp"
#include "support.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::dataset;
using test::error_of;
using test::options_of;
using test::trainer_on;
using testing::HasSubstr;

TEST(PatienceReference, StopsWhereTheReferenceStops) {
  std::ifstream file(RUBATO_SHARED_DIR "/reference/schedules.json");
  if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/schedules.json here";
  const auto run = nlohmann::json::parse(file).at("early_stopping");
  Patience patience({.patience = run.at("patience"), .delta = run.at("delta")});
  for (std::size_t i = 0; i < run.at("metrics").size(); ++i) {
    EXPECT_EQ(patience.is_over_after(run.at("metrics").at(i)), run.at("stop").at(i).get<bool>())
        << i;
  }
}

TEST(Patience, KnowsModesAndDelta) {
  Patience highest({.patience = 2, .delta = 0.1, .mode = MetricMode::max});
  EXPECT_FALSE(highest.is_over_after(0.5));
  EXPECT_TRUE(highest.improved());
  EXPECT_FALSE(highest.is_over_after(0.55)) << "not by more than delta";
  EXPECT_FALSE(highest.improved());
  EXPECT_FALSE(highest.is_over_after(0.65));
  EXPECT_TRUE(highest.improved());
  EXPECT_FALSE(highest.is_over_after(std::nan("")));
  EXPECT_TRUE(highest.is_over_after(0.1));
  EXPECT_EQ(highest.best(), 0.65);
  EXPECT_THAT(error_of([] { static_cast<void>(Patience({.patience = 0})); }),
              HasSubstr("patience 0"));
  EXPECT_THAT(error_of([] { static_cast<void>(Patience({.delta = -1})); }), HasSubstr("delta -1"));
}

TEST(EarlyStopping, StopsTheTrainer) {
  TrainOptions options = options_of("constant");
  options.epochs = 20;
  options.learning_rate = 1e-30;
  Trainer trainer = trainer_on(Trace::constant(48), options);
  trainer.set_test(dataset());
  EarlyStopping stopping(trainer, Metric::test_loss, {.patience = 3});
  trainer.add_observer(stopping);
  const TrainResult result = trainer.fit();
  EXPECT_EQ(result.epochs, 4);
  EXPECT_EQ(result.stopped, "test-loss no longer improves");
}

TEST(Stop, NeedsNoReason) {
  Trainer trainer = trainer_on(Trace::constant(48), options_of("constant"));
  test::Recorder stopper([&](const StepRecord&) { trainer.stop(""); });
  trainer.add_observer(stopper);
  EXPECT_EQ(trainer.fit().stopped, "stopped");
  EXPECT_EQ(stopper.steps.size(), 1U);
  EXPECT_EQ(trainer.fit().steps, 1) << "and stays so";
}

TEST(BestWeights, AreThoseOfTheBestEpoch) {
  TrainOptions options = options_of("constant");
  options.epochs = 4;
  Trainer trainer = trainer_on(Trace::constant(48), options);
  trainer.set_test(dataset());
  int calls = 0;
  BestWeights best(trainer, Metric::test_loss, [&] { ++calls; });
  EXPECT_FALSE(best.value().has_value());
  trainer.add_observer(best);
  std::vector<std::vector<at::Tensor>> after_epoch;
  class Keeper : public Observer {
   public:
    Keeper(const Trainer& trainer, std::vector<std::vector<at::Tensor>>& kept)
        : trainer_(trainer), kept_(kept) {}
    void on_epoch(const EpochRecord&) override {
      kept_.push_back(test::copies_of(trainer_.parameters()));
    }

   private:
    const Trainer& trainer_;
    std::vector<std::vector<at::Tensor>>& kept_;
  } keeper(trainer, after_epoch);
  trainer.add_observer(keeper);
  // Better for three epochs, and then worse.
  class Spoiler : public Observer {
   public:
    explicit Spoiler(Trainer& trainer) : trainer_(trainer) {}
    void on_epoch_begin(const EpochPlan& epoch) override {
      if (epoch.index.value() == 3) trainer_.parameters()[2].tensor.mul_(-1);
    }

   private:
    Trainer& trainer_;
  } spoiler(trainer);
  trainer.add_observer(spoiler);
  trainer.fit();
  EXPECT_EQ(best.epoch(), EpochIndex{2});
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(best.parameters().size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(best.parameters()[i].name, trainer.parameters()[i].name);
    EXPECT_TRUE(at::equal(best.parameters()[i].tensor, after_epoch[2][i]));
  }
}

TEST(Observers, HearEvaluationsAndStopTheTraining) {
  class Stopper : public Observer {
   public:
    explicit Stopper(Trainer& trainer) : trainer_(trainer) {}
    void on_step(const StepRecord& step) override {
      log += "s";
      if (step.plan.index.value() == 4) trainer_.stop("enough");
    }
    void on_evaluate(const EpochRecord& epoch) override { log += epoch.test ? "v" : "?"; }
    void on_epoch(const EpochRecord&) override { log += "e"; }
    std::string log;

   private:
    Trainer& trainer_;
  };
  TrainOptions options = options_of();
  options.epochs = 9;
  Trainer trainer = trainer_on(Trace::constant(16), options);
  trainer.set_test(dataset());
  Stopper stopper(trainer);
  trainer.add_observer(stopper);
  const TrainResult result = trainer.fit();
  EXPECT_EQ(stopper.log, "sssvessve");
  EXPECT_EQ(result.stopped, "enough");
  EXPECT_EQ(result.steps, 5);
}

}  // namespace
}  // namespace rubato
