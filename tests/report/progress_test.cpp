#include <cstdio>
#include <memory>
#include <string>

#include <gmock/gmock.h>

#include <rubato/report/progress.hpp>

#include "support/no_training.hpp"

namespace rubato {
namespace {

test::NoTraining no_training;

using testing::HasSubstr;

TEST(ShortNumber, HasThreeDigitsAtMost) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(843.4), "843");
  EXPECT_EQ(short_number(999.6), "1.00k");
  EXPECT_EQ(short_number(1204), "1.20k");
  EXPECT_EQ(short_number(29810), "29.8k");
  EXPECT_EQ(short_number(298100), "298k");
  EXPECT_EQ(short_number(1.2e6), "1.20M");
}

TEST(ClockTime, GrowsHoursWhenNeeded) {
  EXPECT_EQ(clock_time(-1), "0:00");
  EXPECT_EQ(clock_time(6.6), "0:07");
  EXPECT_EQ(clock_time(750), "12:30");
  EXPECT_EQ(clock_time(3723), "1:02:03");
}

TEST(ProgressBar, FillsUp) {
  EXPECT_EQ(progress_bar(0, 4, false), "....");
  EXPECT_EQ(progress_bar(0.5, 4, false), "##..");
  EXPECT_EQ(progress_bar(1, 4, false), "####");
  EXPECT_EQ(progress_bar(7, 4, false), "####");
  EXPECT_EQ(progress_bar(0.5, 4, true), "██  ");
  EXPECT_EQ(progress_bar(0.3125, 4, true), "█▎  ");
  EXPECT_EQ(progress_bar(1, 2, true), "██");
}

// What two epochs of four steps print.
std::string printed(const ProgressOptions& options) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    Progress progress(file.get(), options);
    for (std::int64_t e = 0; e < 2; ++e) {
      StepPlan four;
      four.batch_size = 64;
      four.cores = 2;
      four.minibatches = 2;
      EpochPlan plan;
      plan.index = EpochIndex{e};
      for (std::int64_t i = 0; i < 4; ++i) {
        four.index = StepIndex{4 * e + i};
        four.first_minibatch = MinibatchIndex{2 * i};
        plan.steps.push_back(four);
      }
      progress.on_epoch_begin(no_training, plan);
      for (const StepPlan& step_plan : plan.steps) {
        StepRecord step;
        step.plan = step_plan;
        step.learning_rate = 0.02;
        step.loss = 0.25;
        progress.on_step(no_training, step);
      }
      EpochRecord record;
      record.epoch = plan.index;
      record.steps = 4;
      record.samples = 256;
      record.train_loss = 0.5;
      record.train_seconds = 2;
      record.test.emplace();
      record.test->loss = 0.125;
      record.test->accuracy = 0.975;
      progress.on_epoch(no_training, record);
    }
  }
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  return text;
}

TEST(Progress, PrintsALineForEachEpoch) {
  EXPECT_EQ(
      printed({.epochs = 2, .samples_per_epoch = 256}),
      "epoch 1/2  4 steps  train loss 0.5000  test loss 0.1250  accuracy 97.50 %  128 samples/s\n"
      "epoch 2/2  4 steps  train loss 0.5000  test loss 0.1250  accuracy 97.50 %  128 samples/s\n");
}

// An epoch in whose middle training goes on.
TEST(Progress, KnowsWhatWasDoneBefore) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  Progress progress(file.get(), {.epochs = 5, .samples_per_epoch = 256, .log_steps = 1});
  EpochPlan plan{.index = EpochIndex{2}};
  for (std::int64_t i = 0; i < 4; ++i) {
    plan.steps.push_back({.index = StepIndex{8 + i},
                          .batch_size = 64,
                          .cores = 2,
                          .first_minibatch = MinibatchIndex{2 * i},
                          .minibatches = 2});
  }
  progress.on_epoch_begin(no_training, plan);
  StepRecord step;
  step.plan = plan.steps[2];
  progress.on_step(no_training, step);
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  EXPECT_THAT(text, HasSubstr("epoch 3/5  step 3/4  "));
}

TEST(Progress, PrintsALineForEverySoManySteps) {
  const std::string text = printed({.epochs = 2, .samples_per_epoch = 256, .log_steps = 2});
  EXPECT_THAT(text, HasSubstr("epoch 1/2  step 2/4  batch 64  lr 0.02  loss 0.2500  "));
  EXPECT_THAT(text, HasSubstr("epoch 2/2  step 4/4  batch 64  lr 0.02  loss 0.2500  "));
  EXPECT_THAT(text, testing::Not(HasSubstr("step 1/4")));
  EXPECT_THAT(text, testing::Not(HasSubstr("\r")));
}

TEST(Progress, DrawsABarOnATerminalAndTakesItAwayAgain) {
  const std::string text =
      printed({.epochs = 2, .samples_per_epoch = 256, .terminal = true, .log_steps = 2});
  EXPECT_THAT(text, HasSubstr("\r\x1b[2Kepoch 1/2 "));
  EXPECT_THAT(text, HasSubstr("batch 64   lr 0.02     loss 0.2500"));
  EXPECT_THAT(text, HasSubstr("\r\x1b[2Kepoch 1/2  4 steps"));
  EXPECT_THAT(text, testing::Not(HasSubstr("step 2/4  batch 64  lr")));
}

}  // namespace
}  // namespace rubato
