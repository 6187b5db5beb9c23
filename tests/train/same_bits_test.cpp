#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <rubato/model/builtin_models.hpp>
#include <rubato/train/losses.hpp>
#include <rubato/train/trainer.hpp>

#include "support.hpp"

namespace rubato {
namespace {

// Everything that a run computes.
struct Outcome {
  std::string state;
  std::vector<double> losses;
  double train_loss = 0;
  Evaluation test;
};

// Two epochs of steps of 1, 13, 3, 24, 2 minibatches: one odd tree after the other, and on 64 cores
// always idle ones.
class SameBits : public testing::Test {
 protected:
  Outcome run(TrainOptions options) const {
    options.epochs = 2;
    options.minibatch_size = 8;
    options.learning_rate = 0.05;
    options.reference_batch_size = 32;
    options.optimizer = {.momentum = 0.5, .weight_decay = 1e-4};
    Trainer trainer(builtin_model("mnist-cnn", {}), nll_loss(), train_,
                    test::trace_of({8, 104, 24, 192, 16}, TraceEnd::cycle), options);
    test::Recorder recorder;
    trainer.add_observer(recorder);
    trainer.set_test(test_);
    trainer.fit();
    Outcome outcome;
    outcome.state = test::state_bytes(trainer);
    for (const StepRecord& step : recorder.steps) outcome.losses.push_back(step.loss);
    outcome.train_loss = recorder.epochs.back().train_loss;
    outcome.test = recorder.epochs.back().test.value();
    return outcome;
  }

 private:
  TensorDataset train_ = test::digits(350);
  TensorDataset test_ = test::digits(300, 2);
};

TEST_F(SameBits, ForAllThreadsCoresAndAssignments) {
  const Outcome expected = run({.cores = 1, .threads = 1});
  ASSERT_EQ(expected.losses.size(), 10U);
  for (const int threads : {1, 2, 4}) {
    for (const std::int64_t cores : {1, 3, 8, 64}) {
      for (const auto& assignment : kAssignments) {
        SCOPED_TRACE(testing::Message()
                     << threads << " threads, " << cores << " cores, " << assignment.name);
        const Outcome outcome =
            run({.cores = cores, .assignment = assignment.value, .threads = threads});
        EXPECT_TRUE(outcome.state == expected.state);
        EXPECT_EQ(outcome.losses, expected.losses);
        EXPECT_EQ(outcome.train_loss, expected.train_loss);
        EXPECT_EQ(outcome.test.loss, expected.test.loss);
        EXPECT_EQ(outcome.test.accuracy, expected.test.accuracy);
      }
    }
  }
}

TEST_F(SameBits, ButNotForAnotherSeedOrRule) {
  const Outcome expected = run({.threads = 2});
  EXPECT_TRUE(run({.threads = 2}).state == expected.state);
  EXPECT_FALSE(run({.seed = 43, .threads = 2}).state == expected.state);
  EXPECT_FALSE(run({.rule = "root", .threads = 2}).state == expected.state);
}

}  // namespace
}  // namespace rubato
