#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <rubato/libtorch/trainer.hpp>

#include "small_run.hpp"
#include "support.hpp"

namespace rubato {
namespace {

using test::options_of;
using test::trainer_on;

std::vector<StepRecord> logged(TrainOptions options) {
  options.log_minibatches = true;
  TorchTrainer trainer = trainer_on(test::trace_of({16, 20, 4, 8}), options);
  return test::recorded(trainer)->steps;
}

TrainOptions one_epoch() {
  TrainOptions options = options_of();
  options.epochs = 1;
  return options;
}

// A step in which a core died is that of the cores which were left.
TEST(MinibatchLog, SaysWhoComputedWhatInTheEnd) {
  for (const std::vector<Fault>& faults :
       {std::vector<Fault>{}, {{.core = CoreRank{1}, .step = StepIndex{0}}}}) {
    for (const Assignment assignment : {Assignment::contiguous, Assignment::strided}) {
      TrainOptions options = one_epoch();
      options.assignment = assignment;
      options.faults.planned = faults;
      std::int64_t next = 0;
      for (const StepRecord& step : logged(options)) {
        EXPECT_EQ(step.plan.cores, next == 0 && !faults.empty() ? 2 : 3);
        ASSERT_EQ(std::ssize(step.minibatches), step.plan.minibatches);
        double losses = 0;
        for (const MinibatchRecord& minibatch : step.minibatches) {
          EXPECT_EQ(minibatch.minibatch.value(), next++);
          const MinibatchRun share = step.plan.share_of(minibatch.core, assignment);
          ASSERT_LT(minibatch.substep, share.count);
          EXPECT_EQ(share[minibatch.substep], minibatch.minibatch);
          EXPECT_GT(minibatch.gradient_norm, 0);
          losses += minibatch.loss;
        }
        EXPECT_NEAR(losses / static_cast<double>(step.minibatches.size()), step.loss, 1e-12);
      }
    }
  }
}

TEST(MinibatchLog, IsTheSameOnAllThreadsAndAfterFaults) {
  const auto log = [](int threads, std::vector<Fault> faults) {
    TrainOptions options = one_epoch();
    options.threads = threads;
    options.faults.planned = std::move(faults);
    std::vector<double> numbers;
    for (const StepRecord& step : logged(options)) {
      for (const MinibatchRecord& minibatch : step.minibatches) {
        numbers.insert(numbers.end(), {minibatch.loss, minibatch.gradient_norm});
      }
    }
    return numbers;
  };
  const std::vector<double> expected = log(1, {});
  EXPECT_EQ(log(4, {}), expected);
  EXPECT_EQ(log(2, {{.core = CoreRank{1}, .step = StepIndex{0}}}), expected);
}

TEST(MinibatchLog, IsEmptyUnlessAskedFor) {
  TorchTrainer trainer = trainer_on(test::trace_of({16, 20, 4, 8}), one_epoch());
  for (const StepRecord& step : test::recorded(trainer)->steps) {
    EXPECT_TRUE(step.minibatches.empty());
  }
}

}  // namespace
}  // namespace rubato
