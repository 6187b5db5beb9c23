// Signals to `rubato train`, and the command that goes on after them.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "app/background_program.hpp"
#include "app/on_terminal.hpp"
#include "app/resumed_training.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::BackgroundProgram;
using test::ProgramResult;

class Signals : public test::ResumedTraining {
 protected:
  [[nodiscard]] static std::string options(const std::string& more) {
    return kOptions + ("--checkpoint-every=never " + more);
  }
  // Without an end, so that signals find it at work, and slow, so that it does not come far.
  [[nodiscard]] static std::string endless(const std::string& run) {
    return options("--epochs=1000000 --straggler=core=0,factor=300 --quiet --out=" + run);
  }
  // In its fourth step, which sleeps, for as long as it matters.
  [[nodiscard]] static std::string stuck(const std::string& run) {
    return options("--epochs=1 --quiet --out=" + run + stuck_after_three_steps());
  }
  void wait_for_lines(const std::string& run, std::size_t lines) const {
    test::wait_until([&] { return metrics_lines(run) >= lines; });
  }
  // Until a program that is stuck is in its fourth step: a signal that comes between two steps ends
  // it there.
  void wait_until_stuck(const BackgroundProgram& program, const std::string& run) const {
    wait_for_lines(run, 3);
    test::wait_until([&] { return program.sleeps(); });
  }
  [[nodiscard]] std::vector<std::string> checkpoints(const std::string& run) const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(file(run) / "checkpoints", ignored)) {
      if (entry.path().extension() == ".safetensors") {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }
  // The run, which a signal has ended, comes to the weights and the metrics of one without signals.
  void expect_one_run(const std::string& run) {
    const std::string epochs =
        fmt::format("--epochs={}", metrics(run).back()["epoch"].get<std::int64_t>() + 2);
    const ProgramResult result = resume(run, epochs + " --straggler=core=0,factor=1 --quiet");
    EXPECT_EQ(result.code, 0) << result.err;
    succeeds(options(epochs + " --quiet --out=whole-" + run));
    EXPECT_EQ(hash(run), hash("whole-" + run));
    EXPECT_EQ(metrics(run), metrics("whole-" + run));
  }
};

TEST_F(Signals, ThatCouldEndItLeaveACheckpoint) {
  for (const int number : {SIGHUP,  SIGINT,    SIGQUIT, SIGILL,  SIGTRAP,   SIGABRT,  SIGBUS,
                           SIGFPE,  SIGSEGV,   SIGUSR2, SIGALRM, SIGSTKFLT, SIGTERM,  SIGXCPU,
                           SIGPROF, SIGVTALRM, SIGPOLL, SIGPWR,  SIGSYS,    SIGRTMIN, SIGRTMAX}) {
    SCOPED_TRACE(number);
    const std::string run = fmt::format("run{}", number);
    BackgroundProgram program(endless(run), folder_.path());
    wait_for_lines(run, 5);
    program.end(number);
    EXPECT_EQ(program.code(), 128 + number);
    EXPECT_THAT(program.output(),
                AllOf(HasSubstr("finishing the step"), HasSubstr("stopped by a signal after "),
                      HasSubstr("to continue: rubato train --resume " + run)));
    EXPECT_FALSE(checkpoints(run).empty());
    EXPECT_FALSE(fs::exists(file(run) / "weights.safetensors"));
  }
  for (const int number : {SIGHUP, SIGINT, SIGSEGV}) expect_one_run(fmt::format("run{}", number));
}

// Whoever starts it with nohup wants it to go on.
TEST_F(Signals, ThatAreIgnoredStayIgnored) {
  const ProgramResult result =
      test::shell(fmt::format("trap '' HUP; \"$0\" {} --epochs=1000000 --out=run --quiet & "
                              "while ! [ -s run/metrics.jsonl ]; do sleep 0.05; done; "
                              "kill -HUP $!; sleep 0.3; kill $!; wait $!",
                              kOptions),
                  folder_.path());
  EXPECT_EQ(result.code, 143) << result.err;
}

TEST_F(Signals, AClosedTerminalIsOne) {
  test::TerminalProgram program(80, options("--epochs=1000000 --out=run"), folder_.path());
  ASSERT_TRUE(program.read_until([&](std::string_view) { return metrics_lines("run") >= 5; }));
  program.hang_up();
  EXPECT_EQ(program.finish(), 129);
  EXPECT_FALSE(checkpoints("run").empty());
}

// By Eigen, by libtorch, and where the weights are rounded to half precision in a step.
TEST_F(Signals, SaveTheStateBeforeAStepAtOnce) {
  for (const std::string more : {"", " --model=mlp:hidden=8 --engine=libtorch --optimizer=adam",
                                 " --model=mlp:hidden=8 --engine=libtorch --precision=fp16"}) {
    SCOPED_TRACE(more);
    fs::remove_all(file("run"));
    fs::remove_all(file("whole"));
    BackgroundProgram program(stuck("run") + more, folder_.path());
    wait_until_stuck(program, "run");
    program.signal(SIGTERM);
    test::wait_until([&] { return !checkpoints("run").empty(); });
    EXPECT_THAT(checkpoints("run"), ElementsAre("step-3.safetensors")) << program.output();
    EXPECT_TRUE(program.runs());
    // The supervisor's patience is at its end.
    program.end(SIGKILL);
    const ProgramResult result = resume("run", "--straggler=core=4,factor=1 --quiet");
    EXPECT_EQ(result.code, 0) << result.err;
    succeeds(options("--epochs=1 --out=whole --quiet") + more);
    EXPECT_EQ(hash("run"), hash("whole"));
    EXPECT_EQ(metrics("run"), metrics("whole"));
  }
}

TEST_F(Signals, OfOneRequestCountOnce) {
  BackgroundProgram program(stuck("run"), folder_.path());
  wait_until_stuck(program, "run");
  for (int i = 0; i < 3; ++i) {
    program.signal(SIGTERM);
    program.signal(SIGINT);
    std::this_thread::sleep_for(milliseconds(5));
  }
  test::wait_until([&] { return !checkpoints("run").empty(); });
  EXPECT_TRUE(program.runs());
  std::this_thread::sleep_for(milliseconds(1100));
  program.end(SIGTERM);
  EXPECT_EQ(program.code(), -SIGTERM);
}

TEST_F(Signals, Usr1SavesAndTheRunGoesOn) {
  BackgroundProgram program(endless("run"), folder_.path());
  wait_for_lines("run", 5);
  for (std::size_t i = 1; i <= 2; ++i) {
    program.signal(SIGUSR1);
    test::wait_until([&] { return checkpoints("run").size() >= i; });
    wait_for_lines("run", metrics_lines("run") + 5);
  }
  EXPECT_TRUE(program.runs());
  program.end(SIGTERM);
  EXPECT_EQ(program.code(), 143);
  expect_one_run("run");

  BackgroundProgram slow(stuck("slow"), folder_.path());
  wait_until_stuck(slow, "slow");
  slow.signal(SIGUSR1);
  test::wait_until([&] { return !checkpoints("slow").empty(); });
  EXPECT_THAT(checkpoints("slow"), ElementsAre("step-3.safetensors"));
}

TEST_F(Signals, TheSameCommandBeginsAndGoesOn) {
  const std::string command = endless("run") + " --continue";
  std::size_t lines = 0;
  for (int i = 0; i < 3; ++i) {
    BackgroundProgram program(command, folder_.path());
    wait_for_lines("run", lines + 7);
    program.end(i == 1 ? SIGINT : SIGTERM);
    EXPECT_EQ(program.code(), i == 1 ? 130 : 143) << program.output();
    lines = metrics_lines("run");
  }
  expect_one_run("run");
  // One that is complete is no mistake.
  succeeds(options(fmt::format("--epochs={} --out=run --continue --quiet",
                               metrics("run").back()["epoch"].get<int>() + 1)));
  EXPECT_EQ(hash("run"), hash("whole-run"));
}

TEST_F(Signals, TheSameCommandBeginsAnewWhatHasComeToNothing) {
  const std::string command = options("--epochs=1 --continue --quiet --out=");
  succeeds(command + "whole");
  {
    BackgroundProgram program(endless("run"), folder_.path());
    wait_for_lines("run", 5);
    program.end(SIGKILL);
  }
  fs::remove(file("run") / "metrics.jsonl");
  {
    BackgroundProgram program(endless("run") + " --continue", folder_.path());
    wait_for_lines("run", 5);
    program.end(SIGTERM);
    EXPECT_EQ(program.code(), 143) << program.output();
  }
  // Killed while it made the folder.
  fs::create_directory(file("begun"));
  succeeds(command + "begun");
  EXPECT_EQ(hash("begun"), hash("whole"));
}

TEST_F(Signals, TheSameCommandIsTheSameRun) {
  const std::string command = options("--epochs=1 --quiet ");
  succeeds(command + "--out=run --continue");
  EXPECT_THAT(refusal(command + "--out=run --continue --lr=0.5"),
              HasSubstr("--lr was 0.01, is 0.5"));
  EXPECT_THAT(refusal(command + "--out=run"), HasSubstr("--out: 'run' exists already"));
  for (const std::string& alone : {command, std::string("train --resume=run ")}) {
    EXPECT_THAT(refusal(alone + "--continue"),
                HasSubstr("accepted: with --out FOLDER, without --resume"));
  }
}

}  // namespace
}  // namespace rubato
