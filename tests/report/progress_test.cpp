#include "runs/report/progress.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <rubato/steps/plan.hpp>
#include <rubato/testing.hpp>

#include "support/matchers.hpp"
#include "support/no_training.hpp"
#include "support/pseudo_terminal.hpp"
#include "support/screen.hpp"

namespace rubato {
namespace {

using test::no_training;

TEST(ShortNumber, HasThreeDigitsAtMost) {
  for (const auto& [number, text] : std::map<double, std::string>{{0, "0"},
                                                                  {843.4, "843"},
                                                                  {999.4, "999"},
                                                                  {999.5, "1.00k"},
                                                                  {1204, "1.20k"},
                                                                  {9994, "9.99k"},
                                                                  {9996, "10.0k"},
                                                                  {99'940, "99.9k"},
                                                                  {99'960, "100k"},
                                                                  {999'400, "999k"},
                                                                  {999'600, "1.00M"},
                                                                  {1.5e9, "1.50G"},
                                                                  {1.5e13, "15000G"}}) {
    EXPECT_EQ(short_number(number), text);
  }
}

TEST(ClockTime, GrowsHoursWhenNeeded) {
  for (const auto& [seconds, text] : std::map<double, std::string>{{-1, "0:00"},
                                                                   {0.4, "0:00"},
                                                                   {6.6, "0:07"},
                                                                   {59.4, "0:59"},
                                                                   {59.6, "1:00"},
                                                                   {3599.4, "59:59"},
                                                                   {3599.6, "1:00:00"},
                                                                   {3723, "1:02:03"},
                                                                   {360'000, "100:00:00"}}) {
    EXPECT_EQ(clock_time(seconds), text);
  }
}

TEST(Decimal, HasNoSignWhereThereIsNoNumber) {
  EXPECT_EQ(decimal(0.25, 4), "0.2500");
  EXPECT_EQ(decimal(-0.25, 1), "-0.2");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(decimal(nan, 4), "nan");
  EXPECT_EQ(decimal(-nan, 4), "nan");
  EXPECT_EQ(decimal(-std::numeric_limits<double>::infinity(), 4), "-inf");
}

// Keeps what progress writes.
struct Written {
  std::string text{};
  int writes = 0;

  ProgressOut out(ProgressStyle style = ProgressStyle::lines, bool verbose = false) {
    return {.write =
                [this](std::string_view more) {
                  text += more;
                  ++writes;
                  return 0;
                },
            .style = style,
            .verbose = verbose};
  }
};

// Two minibatches of 32.
StepPlan plan_of(std::int64_t cores, std::int64_t index = 0) {
  return {.index = StepIndex{index},
          .batch_size = 64,
          .cores = cores,
          .first_minibatch = MinibatchIndex{2 * (index % 4)},
          .minibatches = 2};
}

// An epoch of four such steps.
EpochPlan four_steps(std::int64_t epoch) {
  EpochPlan plan{.index = EpochIndex{epoch}};
  for (std::int64_t i = 0; i < 4; ++i) plan.steps.push_back(plan_of(2, 4 * epoch + i));
  return plan;
}

StepRecord step_of(const StepPlan& plan) {
  StepRecord step;
  step.plan = plan;
  step.learning_rate = 0.123456;
  step.loss = 0.25;
  return step;
}

EpochRecord epoch_of(std::int64_t index, std::int64_t steps) {
  EpochRecord epoch;
  epoch.epoch = EpochIndex{index};
  epoch.steps = steps;
  epoch.samples = 256;
  epoch.train_loss = 0.5;
  epoch.train_seconds = 2;
  epoch.test_seconds = 0.125;
  epoch.test.emplace();
  epoch.test->loss = 0.125;
  epoch.test->accuracy = 0.975;
  return epoch;
}

// What two epochs of four steps print.
std::string printed(std::int64_t log_steps, ProgressStyle style = ProgressStyle::lines) {
  Written written;
  {
    test::MinibatchesOf training(32);
    Progress progress(written.out(style),
                      {.epochs = 2, .samples_per_epoch = 256, .log_steps = log_steps});
    for (std::int64_t e = 0; e < 2; ++e) {
      const EpochPlan plan = four_steps(e);
      progress.on_epoch_begin(training, start_of(plan, {}));
      for (const StepPlan& step : plan.steps) progress.on_step(training, step_of(step));
      progress.on_epoch(training, epoch_of(e, 4));
    }
  }
  return written.text;
}

// What a step prints that comes long enough after the begin of its epoch to be seen where seconds
// are rounded.
std::string printed_after(std::int64_t epochs, std::int64_t minibatch, const StepPlan& plan,
                          std::int64_t samples) {
  Written written;
  Progress progress(written.out(),
                    {.epochs = epochs, .samples_per_epoch = samples, .log_steps = 1});
  test::MinibatchesOf training(minibatch);
  progress.on_epoch_begin(training, {.index = {}, .first_step = {}, .samples = samples});
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  progress.on_step(training, step_of(plan));
  return written.text;
}

TEST(Progress, PrintsALineForEachEpoch) {
  EXPECT_EQ(
      printed(0),
      "epoch 1/2  4 steps  train loss 0.5000  test loss 0.1250  accuracy 97.50 %  128 samples/s\n"
      "epoch 2/2  4 steps  train loss 0.5000  test loss 0.1250  accuracy 97.50 %  128 samples/s\n");
}

// What is ahead of the last step of an epoch are the epochs after it: none, in the end.
TEST(Progress, HasNothingLeftAfterTheLastStep) {
  StepPlan whole = plan_of(2);
  whole.batch_size = 256;
  EXPECT_THAT(printed_after(1, 128, whole, 256), HasSubstr("  0:00 left\n"));
  EXPECT_THAT(printed_after(2, 128, whole, 256), Not(HasSubstr("  0:00 left\n")));
  // The last minibatch is short, and the rest of one from the epoch before stands first.
  const StepPlan rest{.index = StepIndex{0},
                      .batch_size = 401,
                      .cores = 2,
                      .first_minibatch = MinibatchIndex{10},
                      .minibatches = 2,
                      .shift = 3};
  EXPECT_THAT(printed_after(1, 400, rest, 4404), HasSubstr("  0:00 left\n"));
}

// Training goes on in the middle of an epoch.
TEST(Progress, KnowsWhatWasDoneBefore) {
  Written written;
  test::MinibatchesOf training(32);
  Progress progress(written.out(), {.epochs = 5, .samples_per_epoch = 256, .log_steps = 1});
  const EpochPlan plan = four_steps(2);
  progress.on_epoch_begin(training, start_of(plan, {}));
  progress.on_step(training, step_of(plan.steps[2]));
  EXPECT_THAT(written.text, HasSubstr("epoch 3/5  step 11  "));
}

TEST(Progress, PrintsALineForEverySoManySteps) {
  const std::string text = printed(2);
  EXPECT_THAT(text, HasSubstr("epoch 1/2  step 2  batch 64  lr 0.1235  loss 0.2500  "));
  EXPECT_THAT(text, ContainsRegex("epoch 2/2  step 8  batch 64  lr 0\\.1235  loss "
                                  "0\\.2500  [0-9.kMG]+ samples/s  0:00 left\n"));
  EXPECT_THAT(text, Not(AnyOf(HasSubstr("step 1  "), HasSubstr("step 3  "), HasSubstr("\r"))));
}

// A trainer with a budget of 12 steps, and far more epochs.
class Budgeted {
 public:
  explicit Budgeted(std::int64_t log_steps, const std::optional<State>& state = {}) {
    if (state) trainer.load_state(*state);
    trainer.add_observer<Progress>(written_.out(), ProgressOptions{.epochs = options_.epochs,
                                                                   .samples_per_epoch = 48,
                                                                   .log_steps = log_steps,
                                                                   .budget = options_.budget});
  }
  std::string printed() {
    trainer.fit();
    return written_.text;
  }

 private:
  TrainOptions options_{.epochs = 100'000'000,
                        .budget = {.samples = 192},
                        .minibatch_size = 2,
                        .learning_rate = 0.01};
  Written written_;

 public:
  Trainer trainer{test::tiny_objective(), Trace::constant(16), options_};
};

TEST(Progress, KnowsWhatIsLeftOfABudget) {
  EXPECT_THAT(Budgeted(6).printed(), ContainsRegex("step 12  [^\n]* 0:00 left\n"))
      << "not that of all those epochs";
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
  Budgeted before(1);
  before.trainer.add_observer<PauseAfterSixSteps>();
  before.trainer.fit();
  EXPECT_THAT(Budgeted(1, before.trainer.state()).printed(),
              ContainsRegex("step 7  [^\n]*  [1-9][0-9:]+ left\n"))
      << "all those epochs, and not a moment";
}

TEST(Progress, BreaksNoWordOnANarrowTerminal) {
  test::PseudoTerminal pseudo_terminal(40);
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> terminal(
        fdopen(pseudo_terminal.release_program(), "w"), std::fclose);
    Progress(progress_on(terminal.get()), {}).on_epoch(no_training, epoch_of(0, 4));
  }
  std::string text;
  std::array<char, 4096> bytes{};
  // The end of a terminal is an error.
  for (ssize_t count = 0; (count = read(pseudo_terminal.user(), bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  EXPECT_EQ(text,
            "epoch 1/1  4 steps  train loss 0.5000\r\n"
            "  test loss 0.1250  accuracy 97.50 %\r\n"
            "  128 samples/s\r\n");
}

TEST(Progress, DrawsABarOnATerminalAndTakesItAwayAgain) {
  const std::string text = printed(2, ProgressStyle::bar);
  EXPECT_THAT(text, HasSubstr("\r\x1b[2Kepoch 1/2 "));
  EXPECT_THAT(text, ContainsRegex("batch 64 +lr 0.1235 +loss 0.2500"));
  EXPECT_THAT(text, HasSubstr("\r\x1b[2Kepoch 1/2  4 steps"));
  EXPECT_THAT(text, Not(HasSubstr("step 2  batch 64  lr")));
}

// Each epoch's line comes above the view, which is there until the end.
TEST(Progress, DrawsAViewOnATerminalAndTakesItAwayAgain) {
  const std::string text = printed(0, ProgressStyle::view);
  EXPECT_THAT(text, HasSubstr("epoch 1/2"));
  EXPECT_THAT(text, HasSubstr("97.50 %")) << "of the view in the second epoch, too";
  test::Screen screen(200);
  const std::size_t half = text.rfind("\x1b[?2026l");
  screen.send(text.substr(0, half));
  EXPECT_THAT(screen.rows().front(), StartsWith("epoch 1/2  4 steps"));
  EXPECT_THAT(screen.rows(), Contains(HasSubstr("50 %"))) << "and the run below it";
  screen.send(text.substr(half));
  EXPECT_THAT(screen.rows(),
              ElementsAre(StartsWith("epoch 1/2  4 steps"), StartsWith("epoch 2/2  4 steps"), ""));
}

TEST(Progress, DrawsAViewTenTimesASecondAtMost) {
  Written written;
  Progress progress(written.out(ProgressStyle::view), {.epochs = 1, .samples_per_epoch = 640});
  test::MinibatchesOf training(32);
  progress.on_epoch_begin(training, {.index = {}, .first_step = {}, .samples = 640});
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) progress.on_step(training, step_of(plan_of(2, i)));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(written.writes, 1 + static_cast<int>(passed.count() * 10));
  EXPECT_GE(written.writes, 1);
  const int before = written.writes;
  progress.on_epoch(training, epoch_of(0, 1));
  EXPECT_EQ(written.writes, before + 1) << "its line and the view below it, at once";
}

// The cursor needs one of the rows; more lines would scroll the first ones away at each drawing.
TEST(Progress, DrawsAViewOfAsManyLinesAsTheTerminalHasRoomFor) {
  for (const unsigned short rows : std::array<unsigned short, 4>{1, 2, 5, 24}) {
    const test::PseudoTerminal terminal(80, rows);
    std::string text;
    RunViewer viewer([&text](std::string_view drawn) { text += drawn; }, terminal.program(), {});
    viewer.run().note(step_of(plan_of(2)), 64);
    viewer.draw();
    // Without a test there are six lines.
    const std::ptrdiff_t room = std::clamp<std::ptrdiff_t>(rows - 1, 1, 6);
    EXPECT_EQ(std::ranges::count(text, '\n'), room) << rows;
    viewer.draw();
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
  progress.on_step(training, step_of(plan_of(2)));
  const std::vector<std::string> before = screen.rows();
  screen.send("^C\nmessage\n");
  ++disturbances;
  progress.on_epoch(training, epoch_of(0, 1));
  progress.finish();
  const std::vector<std::string> after = screen.rows();
  ASSERT_EQ(after.size(), before.size() + 3);
  for (std::size_t i = 0; i + 1 < before.size(); ++i) EXPECT_EQ(after[i], before[i]);
  EXPECT_EQ(after[before.size()], "message");
  EXPECT_THAT(after[before.size() + 1], StartsWith("epoch 1/3  1 steps"));
}

TEST(Progress, SaysHowLongAnEpochWaitedForOtherHosts) {
  Written written;
  Progress progress(written.out(ProgressStyle::lines, /*verbose=*/true),
                    {.epochs = 3, .samples_per_epoch = 64, .threads = 2});
  test::MinibatchesOf training(32);
  StepRecord step;
  step.plan = plan_of(2);
  step.seconds = {.compute = 0.25, .reduce = 0.25, .exchange = 3, .update = 0.5, .wall = 4};
  progress.on_step(training, step);
  progress.on_step(training, step);
  progress.on_epoch(training, epoch_of(0, 2));
  EXPECT_THAT(written.text,
              HasSubstr("compute 3.1 %, data 0.0 %, reduce 3.1 %, exchange 75.0 %, update "
                        "12.5 %, waiting 6.2 %"));
}

TEST(Progress, SaysOfEachEpochWhatItsStepsHadWhereItIsVerbose) {
  Written written;
  Progress progress(written.out(ProgressStyle::lines, /*verbose=*/true),
                    {.epochs = 3, .samples_per_epoch = 64, .threads = 4});
  test::MinibatchesOf training(32);
  StepRecord step;
  step.learning_rate = 0.25;
  step.seconds = {.data = 0.5, .compute = 3, .reduce = 1, .update = 0.25, .wall = 1.5};
  for (const std::int64_t cores : {2, 8, 4}) {
    step.plan = plan_of(cores);
    progress.on_step(training, step);
  }
  progress.on_epoch(training, epoch_of(0, 3));
  EXPECT_THAT(
      written.text,
      EndsWith("  batch 64  cores 2 to 8  lr 0.25  gain 1\n"
               "  steps 4.5 s of 4 threads: compute 50.0 %, data 8.3 %, reduce 16.7 %, update "
               "16.7 %, waiting 8.3 %  tests 0.125 s\n"));
  written.text.clear();
  progress.on_step(training, step);
  progress.on_epoch(training, epoch_of(1, 1));
  EXPECT_THAT(written.text, HasSubstr("  batch 64  cores 4  lr 0.25  gain 1\n"))
      << "of this epoch alone";
}

// What a step of that epoch draws on a terminal of so many columns.
std::string drawn_on(unsigned short columns, const EpochPlan& plan, const StepPlan& drawn) {
  test::PseudoTerminal pseudo_terminal(columns);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> terminal(
      fdopen(pseudo_terminal.release_program(), "w"), std::fclose);
  Progress progress(progress_on(terminal.get(), ProgressStyle::bar),
                    {.epochs = 200, .samples_per_epoch = 64});
  test::MinibatchesOf training(32);
  progress.on_epoch_begin(training, start_of(plan, {}));
  StepRecord step = step_of(drawn);
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
  plan.steps.push_back(plan_of(2, 12344));
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
  const EpochPlan plan = four_steps(2);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const double done = static_cast<double>(i + 1) / 4;
    // A wide terminal leaves room for the widest bar, of 30 cells; the locale decides of what.
    EXPECT_THAT(drawn_on(200, plan, plan.steps[i]),
                AnyOf(HasSubstr(fmt::format(" {}  step", progress_bar(done, 30, true))),
                      HasSubstr(fmt::format(" {}  step", progress_bar(done, 30, false)))));
  }
}

TEST(Progress, SaysHowMuchOfAnEpochThatWasCutShort) {
  Written written;
  Progress progress(written.out(), {.epochs = 2, .samples_per_epoch = 256, .top_k = 3});
  test::NoTraining training;
  progress.on_epoch_begin(training, start_of(four_steps(0), {}));
  EpochRecord record = epoch_of(0, 3);
  record.train_loss = -std::numeric_limits<double>::quiet_NaN();
  record.test->loss = record.train_loss;
  record.test->top_k_accuracy = 0.75;
  record.test->mse = 0.5;
  record.test->perplexity = 12.25;
  progress.on_epoch(training, record);
  EXPECT_THAT(written.text,
              HasSubstr("epoch 1/2  3 of 4 steps  train loss nan  test loss nan  accuracy 97.50 %  "
                        "top-3 accuracy 75.00 %  mse 0.5000  perplexity 12.2500  "));
}

// A fault is told with the step as people count it.
TEST(Progress, CountsTheStepsOfFaultsFromOne) {
  Written written;
  Progress progress(written.out(), {});
  test::NoTraining training;
  const std::array<FaultRecord, 1> faults{{{.core = CoreRank{3}, .substep = 1}}};
  progress.on_fault(training, plan_of(8), faults, 7);
  EXPECT_EQ(written.text, "step 1: core 3 of 8 died in its substep 1; the step is redone on 7\n");
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
