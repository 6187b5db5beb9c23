#include "runs/report/progress.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <rubato/steps/plan.hpp>
#include <rubato/testing.hpp>

#include "support/no_training.hpp"
#include "support/pseudo_terminal.hpp"
#include "support/screen.hpp"

namespace rubato {
namespace {

using test::no_training;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST(Decimal, HasNoSignWhereThereIsNoNumber) {
  EXPECT_EQ(decimal(0.25, 4), "0.2500");
  EXPECT_EQ(decimal(-0.25, 1), "-0.2");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(decimal(nan, 4), "nan");
  EXPECT_EQ(decimal(-nan, 4), "nan");
  EXPECT_EQ(decimal(-std::numeric_limits<double>::infinity(), 4), "-inf");
}

std::string contents(std::FILE* file) {
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  return text;
}

// What two epochs of four steps print.
std::string printed(const ProgressOptions& options, ProgressStyle style = ProgressStyle::lines) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  {
    test::MinibatchesOf training(32);
    Progress progress(progress_on(file.get(), style), options);
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
      progress.on_epoch_begin(training, start_of(plan, {}));
      for (const StepPlan& step_plan : plan.steps) {
        StepRecord step;
        step.plan = step_plan;
        step.learning_rate = 0.02;
        step.loss = 0.25;
        progress.on_step(training, step);
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
      progress.on_epoch(training, record);
    }
  }
  return contents(file.get());
}

TEST(Progress, PrintsALineForEachEpoch) {
  EXPECT_EQ(
      printed({.epochs = 2, .samples_per_epoch = 256}),
      "epoch 1/2  4 steps  train loss 0.5000  test loss 0.1250  accuracy 97.50 %  128 samples/s\n"
      "epoch 2/2  4 steps  train loss 0.5000  test loss 0.1250  accuracy 97.50 %  128 samples/s\n");
}

// What is ahead of the last step of an epoch are the epochs after it: none, in the end.
TEST(Progress, HasNothingLeftAfterTheLastStep) {
  const auto left_of = [](std::int64_t epochs) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
    Progress progress(progress_on(file.get()),
                      {.epochs = epochs, .samples_per_epoch = 256, .log_steps = 1});
    EpochPlan plan;
    plan.steps.push_back({.index = StepIndex{0},
                          .batch_size = 256,
                          .cores = 2,
                          .first_minibatch = MinibatchIndex{0},
                          .minibatches = 2});
    test::MinibatchesOf training(128);
    progress.on_epoch_begin(training, start_of(plan, {}));
    // Long enough to be seen where seconds are rounded.
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    StepRecord step;
    step.plan = plan.steps[0];
    progress.on_step(training, step);
    return contents(file.get());
  };
  EXPECT_THAT(left_of(1), HasSubstr("  0:00 left\n"));
  EXPECT_THAT(left_of(2), testing::Not(HasSubstr("  0:00 left\n")));
}

// The last step of a training has what is left of the samples, in the last minibatch, too; those
// of a minibatch that was begun in the epoch before stand first.
TEST(Progress, HasNothingLeftAfterAShortMinibatch) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  Progress progress(progress_on(file.get()),
                    {.epochs = 1, .samples_per_epoch = 4404, .log_steps = 1});
  test::MinibatchesOf training(400);
  progress.on_epoch_begin(training, {.index = {}, .first_step = {}, .samples = 4404});
  // Long enough to be seen where seconds are rounded.
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  StepRecord step;
  step.plan = {.index = StepIndex{0},
               .batch_size = 401,
               .cores = 2,
               .first_minibatch = MinibatchIndex{10},
               .minibatches = 2,
               .shift = 3};
  progress.on_step(training, step);
  EXPECT_THAT(contents(file.get()), HasSubstr("  0:00 left\n"));
}

// An epoch in whose middle training goes on.
TEST(Progress, KnowsWhatWasDoneBefore) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  test::MinibatchesOf training(32);
  Progress progress(progress_on(file.get()),
                    {.epochs = 5, .samples_per_epoch = 256, .log_steps = 1});
  EpochPlan plan{.index = EpochIndex{2}};
  for (std::int64_t i = 0; i < 4; ++i) {
    plan.steps.push_back({.index = StepIndex{8 + i},
                          .batch_size = 64,
                          .cores = 2,
                          .first_minibatch = MinibatchIndex{2 * i},
                          .minibatches = 2});
  }
  progress.on_epoch_begin(training, start_of(plan, {}));
  StepRecord step;
  step.plan = plan.steps[2];
  progress.on_step(training, step);
  const std::string text = contents(file.get());
  EXPECT_THAT(text, HasSubstr("epoch 3/5  step 11  "));
}

TEST(Progress, PrintsALineForEverySoManySteps) {
  const std::string text = printed({.epochs = 2, .samples_per_epoch = 256, .log_steps = 2});
  EXPECT_THAT(text, HasSubstr("epoch 1/2  step 2  batch 64  lr 0.02  loss 0.2500  "));
  EXPECT_THAT(text, HasSubstr("epoch 2/2  step 8  batch 64  lr 0.02  loss 0.2500  "));
  EXPECT_THAT(text, testing::Not(HasSubstr("step 1  ")));
  EXPECT_THAT(text, testing::Not(HasSubstr("\r")));
}

TEST(Progress, KnowsWhatIsLeftOfABudget) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  TrainOptions options{.epochs = 1'000'000, .minibatch_size = 2, .learning_rate = 0.01};
  options.budget.samples = 48 * 4;
  Trainer trainer(test::tiny_objective(), Trace::constant(16), options);
  trainer.add_observer<Progress>(progress_on(file.get()),
                                 ProgressOptions{.epochs = options.epochs,
                                                 .samples_per_epoch = 48,
                                                 .log_steps = 6,
                                                 .budget = options.budget});
  trainer.fit();
  std::rewind(file.get());
  std::string text(1 << 12, ' ');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  EXPECT_THAT(text, HasSubstr("step 6  "));
  EXPECT_THAT(text, testing::ContainsRegex("step 12  [^\n]* 0:00 left\n"))
      << "not that of a million epochs";
}

class PauseAfterSixSteps final : public Observer {
 public:
  void on_step(Training& /*training*/, const StepRecord& /*step*/) override { ++steps_; }
  void between_steps(Training& training) override {
    if (steps_ == 6) training.pause();
  }

 private:
  int steps_ = 0;
};

// Of a budget half of which was spent before the run went on: what is left is told by the share
// that is spent here, and with the first step there is none yet.
TEST(Progress, DoesNotTakeWhatWasSpentBeforeAResumeForItsOwn) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  TrainOptions options{.epochs = 100'000'000, .minibatch_size = 2, .learning_rate = 0.01};
  options.budget.samples = 192;
  Trainer before(test::tiny_objective(), Trace::constant(16), options);
  before.add_observer<PauseAfterSixSteps>();
  before.fit();
  Trainer trainer(test::tiny_objective(), Trace::constant(16), options);
  trainer.load_state(before.state());
  trainer.add_observer<Progress>(progress_on(file.get()),
                                 ProgressOptions{.epochs = options.epochs,
                                                 .samples_per_epoch = 48,
                                                 .log_steps = 1,
                                                 .budget = options.budget});
  trainer.fit();
  EXPECT_THAT(contents(file.get()), testing::ContainsRegex("step 7  [^\n]*  [1-9][0-9:]+ left\n"))
      << "all those epochs, and not a moment";
}

TEST(Progress, BreaksNoWordOnANarrowTerminal) {
  EpochRecord record;
  record.steps = 4;
  record.train_loss = 0.5;
  record.test.emplace();
  record.test->accuracy = 0.975;
  test::PseudoTerminal pseudo_terminal(40);
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> terminal(
        fdopen(pseudo_terminal.release_program(), "w"), std::fclose);
    Progress(progress_on(terminal.get()), {}).on_epoch(no_training, record);
  }
  std::string text;
  std::array<char, 4096> bytes{};
  // The end of a terminal is an error.
  for (ssize_t count = 0; (count = read(pseudo_terminal.user(), bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  EXPECT_EQ(text,
            "epoch 1/1  4 steps  train loss 0.5000\r\n"
            "  test loss 0.0000  accuracy 97.50 %\r\n"
            "  0 samples/s\r\n");
}

TEST(Progress, DrawsABarOnATerminalAndTakesItAwayAgain) {
  const std::string text =
      printed({.epochs = 2, .samples_per_epoch = 256, .log_steps = 2}, ProgressStyle::bar);
  EXPECT_THAT(text, HasSubstr("\r\x1b[2Kepoch 1/2 "));
  EXPECT_THAT(text, HasSubstr("batch 64    lr 0.02      loss 0.2500"));
  EXPECT_THAT(text, HasSubstr("\r\x1b[2Kepoch 1/2  4 steps"));
  EXPECT_THAT(text, testing::Not(HasSubstr("step 2  batch 64  lr")));
}

// Each epoch's line comes above the view, which is there until the end.
TEST(Progress, DrawsAViewOnATerminalAndTakesItAwayAgain) {
  const std::string text = printed({.epochs = 2, .samples_per_epoch = 256}, ProgressStyle::view);
  EXPECT_THAT(text, HasSubstr("epoch 1/2"));
  EXPECT_THAT(text, HasSubstr("97.50 %")) << "of the view in the second epoch, too";
  test::Screen screen(200);
  const std::size_t half = text.rfind("\x1b[?2026l");
  screen.send(text.substr(0, half));
  EXPECT_THAT(screen.rows().front(), testing::StartsWith("epoch 1/2  4 steps"));
  EXPECT_THAT(screen.rows(), testing::Contains(HasSubstr("50 %"))) << "and the run below it";
  screen.send(text.substr(half));
  EXPECT_THAT(screen.rows(), testing::ElementsAre(testing::StartsWith("epoch 1/2  4 steps"),
                                                  testing::StartsWith("epoch 2/2  4 steps"), ""));
}

// Two minibatches of 32.
StepPlan plan_of(std::int64_t cores) {
  StepPlan plan;
  plan.batch_size = 64;
  plan.cores = cores;
  plan.minibatches = 2;
  return plan;
}

EpochRecord epoch_of(std::int64_t index, std::int64_t steps) {
  EpochRecord epoch;
  epoch.epoch = EpochIndex{index};
  epoch.steps = steps;
  epoch.test_seconds = 0.125;
  return epoch;
}

TEST(Progress, DrawsAViewTenTimesASecondAtMost) {
  int writes = 0;
  ProgressOut out{.write =
                      [&writes](std::string_view) {
                        ++writes;
                        return 0;
                      },
                  .style = ProgressStyle::view};
  Progress progress(out, {.epochs = 1, .samples_per_epoch = 640});
  test::MinibatchesOf training(32);
  progress.on_epoch_begin(training, {.index = {}, .first_step = {}, .samples = 640});
  const auto begin = std::chrono::steady_clock::now();
  StepRecord step;
  step.plan = plan_of(2);
  for (int i = 0; i < 10; ++i) {
    step.plan.index = StepIndex{i};
    progress.on_step(training, step);
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(writes, 1 + static_cast<int>(passed.count() * 10));
  EXPECT_GE(writes, 1);
  const int before = writes;
  progress.on_epoch(training, epoch_of(0, 1));
  EXPECT_EQ(writes, before + 1) << "its line and the view below it, at once";
}

// The cursor needs one of the rows; more lines would scroll the first ones away at each drawing.
TEST(Progress, DrawsAViewOfAsManyLinesAsTheTerminalHasRoomFor) {
  for (const unsigned short rows : std::array<unsigned short, 4>{1, 2, 5, 24}) {
    const test::PseudoTerminal terminal(80, rows);
    std::string text;
    RunViewer viewer([&text](std::string_view drawn) { text += drawn; }, terminal.program(), {});
    StepRecord step;
    step.plan = plan_of(2);
    viewer.note(step, 64);
    viewer.draw({});
    // Without a test there are six lines.
    const std::ptrdiff_t room = std::clamp<std::ptrdiff_t>(rows - 1, 1, 6);
    EXPECT_EQ(std::ranges::count(text, '\n'), room) << rows;
    viewer.draw({});
    EXPECT_THAT(text, HasSubstr(fmt::format("\r\x1b[{}A", room))) << "it begins where it began";
  }
}

// What a shell or a message has put on the terminal stays, with the view above it.
TEST(Progress, DrawsAViewAnewBelowWhatHasComeMeanwhile) {
  test::Screen screen(200);
  int disturbances = 0;
  ProgressOut out{.write =
                      [&screen](std::string_view text) {
                        screen.send(text);
                        return 0;
                      },
                  .style = ProgressStyle::view,
                  .disturbances = [&disturbances] { return disturbances; }};
  Progress progress(out, {.epochs = 3, .samples_per_epoch = 64});
  test::MinibatchesOf training(32);
  progress.on_epoch_begin(training, {.index = {}, .first_step = {}, .samples = 64});
  StepRecord step;
  step.plan = plan_of(2);
  progress.on_step(training, step);
  const std::vector<std::string> before = screen.rows();
  screen.send("^C\nmessage\n");
  ++disturbances;
  progress.on_epoch(training, epoch_of(0, 1));
  progress.finish();
  const std::vector<std::string> after = screen.rows();
  ASSERT_EQ(after.size(), before.size() + 3);
  for (std::size_t i = 0; i + 1 < before.size(); ++i) EXPECT_EQ(after[i], before[i]);
  EXPECT_EQ(after[before.size()], "message");
  EXPECT_THAT(after[before.size() + 1], testing::StartsWith("epoch 1/3  1 steps"));
}

TEST(Progress, SaysHowLongAnEpochWaitedForOtherHosts) {
  std::string text;
  ProgressOut out{.write =
                      [&text](std::string_view line) {
                        text += line;
                        return 0;
                      },
                  .verbose = true};
  Progress progress(out, {.epochs = 3, .samples_per_epoch = 64, .threads = 2});
  test::MinibatchesOf training(32);
  StepRecord step;
  step.plan = plan_of(2);
  step.seconds = {.compute = 0.25, .reduce = 0.25, .exchange = 3, .update = 0.5, .wall = 4};
  progress.on_step(training, step);
  progress.on_step(training, step);
  progress.on_epoch(training, epoch_of(0, 2));
  EXPECT_THAT(text, HasSubstr("compute 3.1 %, data 0.0 %, reduce 3.1 %, exchange 75.0 %, update "
                              "12.5 %, waiting 6.2 %"));
}

TEST(Progress, SaysOfEachEpochWhatItsStepsHadWhereItIsVerbose) {
  std::string text;
  ProgressOut out{.write =
                      [&text](std::string_view line) {
                        text += line;
                        return 0;
                      },
                  .verbose = true};
  Progress progress(out, {.epochs = 3, .samples_per_epoch = 64, .threads = 4});
  test::MinibatchesOf training(32);
  StepRecord step;
  step.learning_rate = 0.25;
  step.seconds = {.data = 0.5, .compute = 3, .reduce = 1, .update = 0.25, .wall = 1.5};
  for (const std::int64_t cores : {2, 8, 4}) {
    step.plan = plan_of(cores);
    progress.on_step(training, step);
  }
  progress.on_epoch(training, epoch_of(0, 3));
  EXPECT_THAT(text,
              testing::EndsWith(
                  "  batch 64  cores 2 to 8  lr 0.25  gain 1\n"
                  "  steps 4.5 s of 4 threads: compute 50.0 %, data 8.3 %, reduce 16.7 %, update "
                  "16.7 %, waiting 8.3 %  tests 0.125 s\n"));
  text.clear();
  progress.on_step(training, step);
  progress.on_epoch(training, epoch_of(1, 1));
  EXPECT_THAT(text, HasSubstr("  batch 64  cores 4  lr 0.25  gain 1\n")) << "of this epoch alone";
}

// A terminal of so many columns, and what a step of that epoch draws on it.
std::string drawn_on(unsigned short columns, const EpochPlan& plan, const StepPlan& drawn) {
  test::PseudoTerminal pseudo_terminal(columns);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> terminal(
      fdopen(pseudo_terminal.release_program(), "w"), std::fclose);
  Progress progress(progress_on(terminal.get(), ProgressStyle::bar),
                    {.epochs = 200, .samples_per_epoch = 64});
  test::MinibatchesOf training(32);
  progress.on_epoch_begin(training, start_of(plan, {}));
  StepRecord step;
  step.plan = drawn;
  step.learning_rate = 0.0003125;
  step.loss = 2.25;
  progress.on_step(training, step);
  std::array<char, 4096> bytes{};
  const ssize_t count = read(pseudo_terminal.user(), bytes.data(), bytes.size());
  const std::string text(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  constexpr std::string_view kClear = "\r\x1b[2K";
  EXPECT_TRUE(text.starts_with(kClear));
  return text.substr(std::min(text.size(), kClear.size()));
}

std::string drawn_on(unsigned short columns) {
  EpochPlan plan{.index = EpochIndex{99}};
  plan.steps.push_back({.index = StepIndex{12344},
                        .batch_size = 64,
                        .cores = 2,
                        .first_minibatch = MinibatchIndex{0},
                        .minibatches = 2});
  return drawn_on(columns, plan, plan.steps.front());
}

TEST(Progress, CutsNoNumberOnANarrowTerminal) {
  for (unsigned short columns = 4; columns <= 120; ++columns) {
    const std::string line = drawn_on(columns);
    // The cells of the bar are three bytes each, where the locale has them.
    const auto cells = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned>(c) & 0xC0U) != 0x80U;
    });
    EXPECT_LT(cells, columns) << line;
    // What is there is there whole.
    for (const auto& [name, whole] : std::map<std::string, std::string>{{"epo", "epoch 100/200"},
                                                                        {"ste", "step 12345"},
                                                                        {"bat", "batch 64"},
                                                                        {"lr", "lr 0.0003125"},
                                                                        {"los", "loss 2.2500"}}) {
      if (line.find(name) != std::string::npos) {
        EXPECT_THAT(line, HasSubstr(whole)) << columns;
      }
    }
  }
  EXPECT_THAT(drawn_on(80), AllOf(HasSubstr("lr 0.0003125 "), HasSubstr("loss 2.2500")));
  // There is no room for the rate.
  EXPECT_THAT(drawn_on(60), AllOf(Not(HasSubstr("lr")), HasSubstr("loss 2.2500")));
}

// The bar is that of the epoch, wherever in it training has gone on.
TEST(Progress, DrawsHowMuchOfTheEpochIsDone) {
  EpochPlan plan{.index = EpochIndex{2}};
  for (std::int64_t i = 0; i < 4; ++i) {
    plan.steps.push_back({.index = StepIndex{8 + i},
                          .batch_size = 64,
                          .cores = 2,
                          .first_minibatch = MinibatchIndex{2 * i},
                          .minibatches = 2});
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const double done = static_cast<double>(i + 1) / 4;
    // A wide terminal leaves room for the widest bar, of 30 cells; the locale decides of what.
    EXPECT_THAT(drawn_on(200, plan, plan.steps[i]),
                testing::AnyOf(HasSubstr(fmt::format(" {}  step", progress_bar(done, 30, true))),
                               HasSubstr(fmt::format(" {}  step", progress_bar(done, 30, false)))));
  }
}

TEST(Progress, SaysHowMuchOfAnEpochThatWasCutShort) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  Progress progress(progress_on(file.get()), {.epochs = 2, .samples_per_epoch = 256, .top_k = 3});
  test::NoTraining training;
  EpochPlan plan;
  for (std::int64_t i = 0; i < 4; ++i) {
    plan.steps.push_back({.index = StepIndex{i},
                          .batch_size = 64,
                          .cores = 2,
                          .first_minibatch = MinibatchIndex{2 * i},
                          .minibatches = 2});
  }
  progress.on_epoch_begin(training, start_of(plan, {}));
  EpochRecord record;
  record.steps = 3;
  record.train_loss = -std::numeric_limits<double>::quiet_NaN();
  record.test.emplace();
  record.test->loss = -std::numeric_limits<double>::quiet_NaN();
  record.test->accuracy = 0.5;
  record.test->top_k_accuracy = 0.75;
  record.test->mse = 0.5;
  record.test->perplexity = 12.25;
  progress.on_epoch(training, record);
  EXPECT_THAT(contents(file.get()),
              HasSubstr("epoch 1/2  3 of 4 steps  train loss nan  test loss nan  accuracy 50.00 %  "
                        "top-3 accuracy 75.00 %  mse 0.5000  perplexity 12.2500  "));
}

// A fault is told with the step as people count it.
TEST(Progress, CountsTheStepsOfFaultsFromOne) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  Progress progress(progress_on(file.get()), {});
  test::NoTraining training;
  const std::array<FaultRecord, 1> faults{{{.core = CoreRank{3}, .substep = 1}}};
  StepPlan first;
  first.cores = 8;
  progress.on_fault(training, first, faults, 7);
  EXPECT_EQ(contents(file.get()),
            "step 1: core 3 of 8 died in its substep 1; the step is redone on 7\n");
}

TEST(Progress, RemembersThatSomethingCouldNotBeWritten) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> full(std::fopen("/dev/full", "w"),
                                                             std::fclose);
  ASSERT_NE(full, nullptr);
  Progress progress(progress_on(full.get()), {.log_steps = 1});
  test::NoTraining training;
  EXPECT_EQ(progress.error(), 0);
  progress.on_epoch(training, {});
  EXPECT_EQ(progress.error(), ENOSPC);
  progress.on_epoch(training, {});
  EXPECT_EQ(progress.error(), ENOSPC);
}

}  // namespace
}  // namespace rubato
