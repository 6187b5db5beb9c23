// `rubato watch`: what it shows of runs that others train.

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "app/background_program.hpp"
#include "app/on_terminal.hpp"
#include "app/run_program.hpp"
#include "support/screen.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

using Arguments = std::vector<std::string>;

void train(const std::filesystem::path& out, const Arguments& more = {}) {
  Arguments all{"train", "--model", "softmax", "--epochs", "2", "--quiet", "--out", out.string()};
  all.insert(all.end(), more.begin(), more.end());
  const test::ProgramResult result = test::rubato(all);
  ASSERT_EQ(result.code, 0) << result.err;
}

std::vector<std::string> shown(const test::TerminalProgram& program, std::size_t columns) {
  test::Screen screen(columns);
  screen.send(program.text());
  EXPECT_TRUE(screen.at_line_begin());
  return screen.rows();
}

int epochs_in(const std::string& metrics) {
  const std::string epoch = R"("kind":"epoch")";
  int count = 0;
  for (std::size_t at = 0; (at = metrics.find(epoch, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(Watch, PrintsHowARunStandsWhereThereIsNoTerminal) {
  const test::TempFolder folder;
  train(folder.path() / "run");
  const test::ProgramResult result = test::rubato({"watch", "run"}, folder.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(result.out,
              ContainsRegex("^epoch 2/2 +100 %  .*\ntook +0:0[0-9]  step 89  .*\n"
                            "loss +0\\.[0-9]+  .*\naccuracy +8[0-9]\\.[0-9]+ %  .*\n"
                            "batch +[0-9]+  .*\ncores +8/8  .*\nlr +0\\.[0-9]+  gain "));
}

TEST(Watch, PrintsALineForEachOfSeveral) {
  const test::TempFolder folder;
  train(folder.path() / "runs" / "first");
  train(folder.path() / "runs" / "second", {"--rule", "root"});
  const test::ProgramResult result = test::rubato({"watch", "runs"}, folder.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              ContainsRegex("^2 of 2 runs have ended  .*\nfirst +100 %  .* 0:0[0-9] took +8[0-9]"
                            "\\.[0-9]+ %  loss +0\\.[0-9]+.*\nsecond +100 %  [^\n]*\n$"));
}

// On a terminal it follows a run that is killed and resumed, to its end.
TEST(Watch, FollowsARunThatIsKilledAndResumed) {
  const test::TempFolder folder;
  test::BackgroundProgram killed({"train", "--model", "softmax", "--epochs", "10000",
                                  "--checkpoint-every", "20steps", "--quiet", "--out", "run"},
                                 folder.path());
  const std::filesystem::path checkpoints = folder.path() / "run" / "checkpoints";
  while (killed.runs() &&
         (!std::filesystem::exists(checkpoints) || std::filesystem::is_empty(checkpoints))) {
    usleep(10'000);
  }
  test::TerminalProgram watching(80, {"watch", "run"}, folder.path());
  ASSERT_TRUE(watching.read_until("accuracy"));
  killed.end(SIGKILL);
  const std::string epochs =
      std::to_string(epochs_in(test::read_file(folder.path() / "run" / "metrics.jsonl")) + 3);
  const test::ProgramResult resumed =
      test::rubato({"train", "--resume", "run", "--epochs", epochs, "--quiet"}, folder.path());
  if (resumed.code != 0) kill(watching.process(), SIGKILL);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(watching.finish(), 0) << watching.text();
  const std::vector<std::string> rows = shown(watching, 80);
  const std::string bar = "epoch " + epochs + "/" + epochs;
  EXPECT_THAT(rows, Contains(ContainsRegex("^" + bar + " +100 %")));
  EXPECT_THAT(rows, Contains(testing::StartsWith("took ")));
  EXPECT_EQ(test::rubato({"watch", "run"}, folder.path()).out.substr(0, bar.size()), bar);
}

TEST(Watch, EndsWithCtrlC) {
  const test::TempFolder folder;
  folder.write("run/config.toml", "epochs = 3\n");
  test::TerminalProgram program(80, {"watch", "run"}, folder.path());
  ASSERT_TRUE(program.read_until("epoch 1/3"));
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
  EXPECT_THAT(shown(program, 80), Contains(HasSubstr("epoch 1/3")));
}

TEST(Watch, LeavesOutRunsForWhichThereIsNoRoom) {
  const test::TempFolder folder;
  for (int i = 10; i < 60; ++i) {
    folder.write("runs/run-" + std::to_string(i) + "/config.toml", "epochs = 3\n");
  }
  folder.write("runs/run-59/summary.json", R"({"wall_seconds": 1})");
  test::TerminalProgram program(60, {"watch", "runs"}, folder.path(), {{"NO_COLOR", "1"}});
  ASSERT_TRUE(program.read_until("\x1b[?2026l"));
  program.type("\x03");
  EXPECT_EQ(program.finish(), 130);
  const std::vector<std::string> rows = shown(program, 60);
  ASSERT_GE(rows.size(), 23U);
  EXPECT_THAT(rows[0], testing::StartsWith("1 of 50 runs have ended"));
  EXPECT_THAT(rows[1], testing::StartsWith("run-10"));
  EXPECT_EQ(rows[22], "and 29 more");
  EXPECT_THAT(program.text(), Not(HasSubstr("\x1b[36m")));
}

// For the terminal to scroll.
TEST(Watch, PrintsAllRunsOnceTheyHaveEnded) {
  const test::TempFolder folder;
  for (int i = 10; i < 60; ++i) {
    const std::string run = "runs/run-" + std::to_string(i);
    folder.write(run + "/config.toml", "epochs = 3\n");
    folder.write(run + "/summary.json", R"({"wall_seconds": 1})");
  }
  test::TerminalProgram program(60, {"watch", "runs"}, folder.path(), {{"NO_COLOR", "1"}});
  EXPECT_EQ(program.finish(), 0);
  const std::vector<std::string> rows = shown(program, 60);
  ASSERT_GE(rows.size(), 51U);
  EXPECT_THAT(rows[0], testing::StartsWith("50 of 50 runs have ended"));
  EXPECT_THAT(rows[50], testing::StartsWith("run-59"));
}

TEST(Watch, LeavesOutTheMiddleOfLongNames) {
  const test::TempFolder folder;
  for (const char* const name : {"spot-most-16_linear_größe-0.01_momentum-0.9_seed-1",
                                 "spot-most-16_root_größe-0.01_momentum-0.9_seed-1"}) {
    folder.write(std::string("runs/") + name + "/config.toml", "epochs = 3\n");
  }
  const test::ProgramResult result = test::rubato({"watch", "runs"}, folder.path());
  EXPECT_THAT(result.out, HasSubstr("\nspot-most-16_linea...momentum-0.9_seed-1 "));
  EXPECT_THAT(result.out, HasSubstr("\nspot-most-16_root_...momentum-0.9_seed-1 "));
}

TEST(Watch, CountsTheRunsOfADesign) {
  const test::TempFolder folder;
  folder.write("exp/design.toml",
               "model = \"softmax\"\n[axes]\nrule = [\"linear\", \"root\"]\nseed = \"1..3\"\n");
  for (const char* const run : {"exp/runs/elastic_linear_seed-1", "exp/runs/elastic_root_seed-1"}) {
    folder.write(std::string(run) + "/config.toml", "epochs = 3\n");
    folder.write(std::string(run) + "/summary.json", R"({"wall_seconds": 1})");
  }
  const test::ProgramResult result = test::rubato({"watch", "exp"}, folder.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, testing::StartsWith("2 of 9 runs have ended  "));
}

TEST(Watch, SaysWhatItCannotWatch) {
  const test::TempFolder folder;
  const auto error_of = [&](const Arguments& arguments) {
    const test::ProgramResult result = test::rubato(arguments, folder.path());
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  EXPECT_EQ(error_of({"watch"}),
            "rubato watch: no RUN|EXPERIMENT is given; accepted: rubato watch RUN|EXPERIMENT... "
            "[OPTIONS]\n");
  EXPECT_EQ(
      error_of({"watch", "nowhere"}),
      "rubato watch: nowhere: no such folder; accepted: the folder of a run, or one with runs "
      "in it\n");
  folder.write("run/metrics.jsonl", "[]\n");
  EXPECT_THAT(error_of({"watch", "run"}),
              testing::StartsWith("rubato watch: run/metrics.jsonl:1: is not a line of metrics;"));
}

}  // namespace
}  // namespace rubato
