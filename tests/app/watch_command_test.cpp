// `rubato watch`: what it shows of runs that others train.

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/background_program.hpp"
#include "app/command_test.hpp"
#include "app/on_terminal.hpp"
#include "support/matchers.hpp"
#include "support/screen.hpp"

namespace rubato {
namespace {

class Watch : public test::CommandTest {
 protected:
  void train(const std::string& run) const {
    succeeds("train --model softmax --epochs 2 --quiet --out " + run);
  }
};

std::vector<std::string> shown(const test::TerminalProgram& program, std::size_t columns) {
  test::Screen screen(columns);
  screen.send(program.text());
  EXPECT_TRUE(screen.at_line_begin());
  return screen.rows();
}

std::ptrdiff_t epochs_in(const std::string& metrics) {
  return test::occurrences(metrics, R"("kind":"epoch")");
}

TEST_F(Watch, PrintsHowARunStandsWhereThereIsNoTerminal) {
  train("run");
  const std::string shown = succeeds("watch run");
  EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown, ContainsRegex("^epoch 2/2 +100 %  .*\ntook +[0-9]+:[0-9][0-9]  step 89  .*\n"
                                   "loss +0\\.[0-9]+  .*\naccuracy +8[0-9]\\.[0-9]+ %  .*\n"
                                   "batch +[0-9]+  .*\ncores +8/8  .*\nlr +0\\.[0-9]+  gain "));
}

TEST_F(Watch, PrintsALineForEachOfSeveral) {
  train("runs/first");
  train("runs/second --rule root");
  const std::string shown = succeeds("watch runs");
  EXPECT_THAT(shown,
              ContainsRegex("^2 of 2 runs have ended  .*\nfirst +100 %  .* [0-9]+:[0-9][0-9] took +"
                            "8[0-9]\\.[0-9]+ %  loss +0\\.[0-9]+.*\nsecond +100 %  [^\n]*\n$"));
}

// On a terminal it follows a run that is killed and resumed, to its end.
TEST_F(Watch, FollowsARunThatIsKilledAndResumed) {
  test::BackgroundProgram killed(
      "train --model softmax --epochs 10000 --checkpoint-every 20steps --quiet --out run",
      folder_.path());
  const std::filesystem::path checkpoints = file("run/checkpoints");
  while (killed.runs() &&
         (!std::filesystem::exists(checkpoints) || std::filesystem::is_empty(checkpoints))) {
    usleep(10'000);
  }
  test::TerminalProgram watching(80, "watch run", folder_.path());
  ASSERT_TRUE(watching.read_until("accuracy"));
  killed.end(SIGKILL);
  const std::string epochs = std::to_string(epochs_in(content("run/metrics.jsonl")) + 3);
  const test::ProgramResult resumed = rubato("train --resume run --quiet --epochs " + epochs);
  if (resumed.code != 0) kill(watching.process(), SIGKILL);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(watching.finish(), 0) << watching.text();
  const std::vector<std::string> rows = shown(watching, 80);
  const std::string bar = "epoch " + epochs + "/" + epochs;
  EXPECT_THAT(rows, Contains(ContainsRegex("^" + bar + " +100 %")));
  EXPECT_THAT(rows, Contains(StartsWith("took ")));
  EXPECT_EQ(succeeds("watch run").substr(0, bar.size()), bar);
}

TEST_F(Watch, EndsWithCtrlC) {
  folder_.write("run/config.toml", "epochs = 3\n");
  test::TerminalProgram program(80, "watch run", folder_.path());
  ASSERT_TRUE(program.read_until("epoch 1/3"));
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
  EXPECT_THAT(shown(program, 80), Contains(HasSubstr("epoch 1/3")));
}

TEST_F(Watch, LeavesOutRunsForWhichThereIsNoRoom) {
  for (int i = 10; i < 60; ++i) {
    folder_.write("runs/run-" + std::to_string(i) + "/config.toml", "epochs = 3\n");
  }
  folder_.write("runs/run-59/summary.json", R"({"wall_seconds": 1})");
  test::TerminalProgram program(60, "watch runs", folder_.path(), {{"NO_COLOR", "1"}});
  ASSERT_TRUE(program.read_until("\x1b[?2026l"));
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
  const std::vector<std::string> rows = shown(program, 60);
  ASSERT_GE(rows.size(), 23U);
  EXPECT_THAT(rows[0], StartsWith("1 of 50 runs have ended"));
  EXPECT_THAT(rows[1], StartsWith("run-10"));
  EXPECT_EQ(rows[22], "and 29 more");
  EXPECT_THAT(program.text(), Not(HasSubstr("\x1b[36m")));
}

// For the terminal to scroll.
TEST_F(Watch, PrintsAllRunsOnceTheyHaveEnded) {
  for (int i = 10; i < 60; ++i) {
    const std::string run = "runs/run-" + std::to_string(i);
    folder_.write(run + "/config.toml", "epochs = 3\n");
    folder_.write(run + "/summary.json", R"({"wall_seconds": 1})");
  }
  test::TerminalProgram program(60, "watch runs", folder_.path(), {{"NO_COLOR", "1"}});
  EXPECT_EQ(program.finish(), 0);
  const std::vector<std::string> rows = shown(program, 60);
  ASSERT_GE(rows.size(), 51U);
  EXPECT_THAT(rows[0], StartsWith("50 of 50 runs have ended"));
  EXPECT_THAT(rows[50], StartsWith("run-59"));
}

TEST_F(Watch, LeavesOutTheMiddleOfLongNames) {
  for (const char* const name : {"spot-most-16_linear_größe-0.01_momentum-0.9_seed-1",
                                 "spot-most-16_root_größe-0.01_momentum-0.9_seed-1"}) {
    folder_.write(std::string("runs/") + name + "/config.toml", "epochs = 3\n");
  }
  const std::string shown = succeeds("watch runs");
  EXPECT_THAT(shown, HasSubstr("\nspot-most-16_linea...momentum-0.9_seed-1 "));
  EXPECT_THAT(shown, HasSubstr("\nspot-most-16_root_...momentum-0.9_seed-1 "));
}

// No row is wider than the terminal, and no mark loses its letter.
TEST_F(Watch, CountsTheColumnsOfNames) {
  train("runs/\u5b66\u7fd2\u7387");
  train("runs/zoe\u0301");
  EXPECT_THAT(succeeds("watch runs"),
              ContainsRegex("\nzoe\u0301     +100 %[^\n]*\n\u5b66\u7fd2\u7387  +100 %|"
                            "\n\u5b66\u7fd2\u7387  +100 %[^\n]*\nzoe\u0301     +100 %"));
}

TEST_F(Watch, SaysWhatItCannotWatch) {
  EXPECT_EQ(refusal("watch"),
            "rubato watch: no RUN|EXPERIMENT is given; accepted: rubato watch RUN|EXPERIMENT... "
            "[OPTIONS]\n");
  EXPECT_EQ(
      refusal("watch nowhere"),
      "rubato watch: nowhere: no such folder; accepted: the folder of a run, or one with runs "
      "in it\n");
  folder_.write("run/metrics.jsonl", "[]\n");
  EXPECT_THAT(refusal("watch run"),
              StartsWith("rubato watch: run/metrics.jsonl:1: is not a line of metrics;"));
}

}  // namespace
}  // namespace rubato
