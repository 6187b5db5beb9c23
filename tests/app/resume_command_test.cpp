#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/resumed_training.hpp"
#include "app/run_program.hpp"
#include "base/state/sha256.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::ProgramResult;
using test::read_file;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

class ResumeCommand : public test::ResumedTraining {};

TEST_F(ResumeCommand, GoesOnFromTheNewestCheckpointToTheSameResult) {
  ASSERT_EQ(train({"--epochs=4", "--out=whole", "--keep-best"}).code, 0);
  ASSERT_EQ(train({"--epochs=2", "--out=run", "--keep-best", "--checkpoint-every=3steps"}).code, 0);
  // All at once: more epochs, on others.
  const ProgramResult result = resume("run", {"--epochs=4", "--threads=1", "--cores=3",
                                              "--reduce=sharded", "--assignment=strided"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("continuing after "), HasSubstr("\nepoch 4/4  "),
                                Not(HasSubstr("\nepoch 2/4  "))));
  EXPECT_EQ(hash("run"), hash("whole"));
  EXPECT_EQ(metrics("run"), metrics("whole"));
  EXPECT_EQ(read_file(file("run/best.safetensors")), read_file(file("whole/best.safetensors")));
  EXPECT_THAT(read_file(file("run/config.toml")), HasSubstr("epochs = 4"));
  // There is nothing left to do, and nothing is done.
  EXPECT_EQ(resume("run").code, 0);
  EXPECT_EQ(metrics("run"), metrics("whole"));
}

// Of all processes of the run: the last one of these has nothing left to train.
TEST_F(ResumeCommand, AddsUpTheTimeOfTheRun) {
  ASSERT_EQ(train({"--epochs=60", "--out=run", "--quiet"}).code, 0);
  const double before = summary("run")["wall_seconds"];
  const double trained = summary("run")["train_seconds"];
  ASSERT_EQ(resume("run", {"--quiet"}).code, 0);
  EXPECT_GE(summary("run")["wall_seconds"], before);
  EXPECT_EQ(summary("run")["train_seconds"], trained);
}

TEST_F(ResumeCommand, PassesOverDamagedCheckpoints) {
  ASSERT_EQ(train({"--epochs=2", "--out=run", "--checkpoint-every=4steps", "--keep=100"}).code, 0);
  const auto expected = metrics("run");
  const std::string weights = hash("run");
  std::vector<fs::path> checkpoints;
  for (const auto& entry : fs::directory_iterator(file("run/checkpoints"))) {
    checkpoints.push_back(entry.path());
  }
  std::sort(checkpoints.begin(), checkpoints.end(), [](const fs::path& a, const fs::path& b) {
    return std::stoi(a.stem().string().substr(5)) > std::stoi(b.stem().string().substr(5));
  });
  ASSERT_GE(checkpoints.size(), 4U);
  fs::resize_file(checkpoints[0], fs::file_size(checkpoints[0]) / 2);
  {
    std::fstream flipped(checkpoints[1], std::ios::in | std::ios::out | std::ios::binary);
    flipped.seekp(-100, std::ios::end);
    flipped.put('!');
  }
  const ProgramResult result = resume("run", {"--quiet"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr(checkpoints[0].filename().string() + ": damaged"),
                                HasSubstr(checkpoints[1].filename().string() + ": damaged"),
                                Not(HasSubstr(checkpoints[2].filename().string()))));
  EXPECT_EQ(hash("run"), weights);
  EXPECT_EQ(metrics("run"), expected);

  for (const auto& entry : fs::directory_iterator(file("run/checkpoints"))) {
    fs::resize_file(entry.path(), 20);
  }
  const ProgramResult none = resume("run");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("no checkpoint can be read; accepted:"));
  EXPECT_EQ(metrics("run"), expected) << "nothing was touched";
}

TEST_F(ResumeCommand, RefusesAnotherConfigurationAndSaysWhatMayChange) {
  ASSERT_EQ(train({"--epochs=1", "--out=run"}).code, 0);
  const auto before = metrics("run");
  const auto error = [&](const std::string& option) {
    const ProgramResult result = resume("run", {option});
    EXPECT_EQ(result.code, 2) << option;
    return result.err;
  };
  EXPECT_THAT(error("--lr=0.5"), AllOf(HasSubstr("--lr was 0.01, is 0.5"),
                                       HasSubstr("may be changed: --on-trace-end, --cores, ")));
  EXPECT_THAT(error("--momentum=0.9"), HasSubstr("--momentum was not set, is 0.9"));
  EXPECT_THAT(error("--label-smoothing=0.1"), HasSubstr("--label-smoothing was 0, is 0.1"));
  EXPECT_THAT(error("--out=other"), HasSubstr("--out: a resumed run stays in its folder"));
  EXPECT_THAT(error("--config=run/config.toml"), HasSubstr("--resume has a configuration"));
  EXPECT_THAT(error("--reduce=ring"), HasSubstr("does not give the same bits"));
  folder_.write("trace2.csv", "step,batchsize\n0,8\n");
  EXPECT_THAT(error("--trace=trace2.csv"), HasSubstr("the trace is not that of the run"));
  // Also when the file of the configuration was changed.
  const std::string config = read_file(file("run/config.toml"));
  folder_.write("run/config.toml", config + "clip-norm = 1\n");
  EXPECT_THAT(error("--quiet"), HasSubstr("--clip-norm was not set, is 1"));
  folder_.write("run/config.toml", config);
  EXPECT_EQ(metrics("run"), before);

  // The data may lie elsewhere, but must be the same.
  fs::rename(file("data"), file("moved"));
  EXPECT_EQ(resume("run", {"--data=mnist:moved"}).code, 0);
  // Where they lie now is remembered.
  EXPECT_EQ(resume("run").code, 0);
  std::fstream pixels(file("moved/train-images-idx3-ubyte"),
                      std::ios::in | std::ios::out | std::ios::binary);
  pixels.seekp(-1, std::ios::end);
  pixels.put('!');
  pixels.close();
  EXPECT_THAT(error("--data=mnist:moved"), HasSubstr("not the data of the run"));

  EXPECT_THAT(resume("nowhere").err,
              HasSubstr("cannot read the configuration nowhere/config.toml"));
}

// A run that was killed before its first checkpoint.
TEST_F(ResumeCommand, BeginsAnewWhereThereIsNoCheckpoint) {
  ASSERT_EQ(train({"--epochs=2", "--out=whole"}).code, 0);
  const ProgramResult result =
      train({"--epochs=2", "--out=run", "--checkpoint-every=never", stuck_after_three_steps()},
            after_lines("run", 3, [](pid_t process) { kill(process, SIGKILL); }));
  EXPECT_EQ(result.signal, SIGKILL);
  const ProgramResult again = resume("run", {"--straggler=core=4,factor=1"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("there is no checkpoint yet: the run starts over"));
  EXPECT_EQ(hash("run"), hash("whole"));
  EXPECT_EQ(metrics("run"), metrics("whole"));
}

TEST_F(ResumeCommand, ARunFolderIsForOneProcess) {
  const ProgramResult result = train(
      {"--epochs=1000000", "--out=run", "--quiet"}, after_lines("run", 5, [this](pid_t process) {
        const ProgramResult second = resume("run");
        EXPECT_EQ(second.code, 2);
        EXPECT_THAT(second.err, HasSubstr("another process works in this run folder"));
        kill(process, SIGTERM);
      }));
  EXPECT_EQ(result.code, 143);
}

TEST_F(ResumeCommand, ARunFolderThatHasGoneIsSaid) {
  const ProgramResult result =
      train({"--epochs=1000000", "--out=run", "--quiet", "--checkpoint-every=20steps"},
            // All of it at once: a removal of file after file races with the program's writing.
            after_lines("run", 5, [this](pid_t) { fs::rename(file("run"), file("elsewhere")); }));
  EXPECT_EQ(result.code, 24);
  // Which of its files the program misses first depends on the moment.
  EXPECT_THAT(result.err,
              AllOf(AnyOf(HasSubstr("has gone while it was written to"),
                          HasSubstr("cannot write: No such file or directory")),
                    HasSubstr("the weights after "), HasSubstr("are in run/weights.safetensors")));
  EXPECT_TRUE(fs::exists(file("run/weights.safetensors")));
}

// A checkpoint alone, such as one that was written after the folder had gone, is nothing to go on
// from.
TEST_F(ResumeCommand, ARunFolderOfWhichAPartIsLeftIsNotSaidToBeKept) {
  const ProgramResult result =
      train({"--epochs=1000000", "--out=run", "--quiet", "--checkpoint-every=20steps"},
            after_lines("run", 60, [this](pid_t) {
              // The program goes on meanwhile, and removes its older checkpoints.
              std::error_code is_gone;
              do {
                fs::remove_all(file("part"));
                fs::create_directories(file("part"));
                fs::copy(file("run/checkpoints"), file("part/checkpoints"), is_gone);
              } while (is_gone);
              // At once, so that the program finds the one or the other.
              ASSERT_EQ(renameat2(AT_FDCWD, file("run").c_str(), AT_FDCWD, file("part").c_str(),
                                  RENAME_EXCHANGE),
                        0);
            }));
  EXPECT_EQ(result.code, 24) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("the weights after "), Not(HasSubstr("are kept"))));
}

TEST_F(ResumeCommand, AFullDiskLosesNothingThatWasWritten) {
  ASSERT_EQ(train({"--epochs=9", "--out=whole", "--quiet"}).code, 0);
  // No file may become longer than 64 blocks: a full disk in small.
  const ProgramResult result = test::run_program(
      "/bin/sh",
      {"-c",
       "ulimit -f 64; exec \"$0\" train --data=mnist:data --model=softmax "
       "--trace=trace.csv --minibatch=8 --on-trace-end=cycle --rule=adascale --lookahead=3 "
       "--epochs=9 --out='a run' --quiet --checkpoint-every=5steps",
       RUBATO_PROGRAM},
      folder_.path());
  EXPECT_EQ(result.code, 24) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot write: File too large"),
                                HasSubstr("to continue: rubato train --resume 'a run'")));
  EXPECT_EQ(resume("a run").code, 0);
  EXPECT_EQ(hash("a run"), hash("whole"));
  EXPECT_EQ(metrics("a run"), metrics("whole"));
}

TEST_F(ResumeCommand, EmulatedFaultsAreSeenAndChangeNoBit) {
  ASSERT_EQ(train({"--epochs=1", "--out=whole"}).code, 0);
  const ProgramResult result =
      train({"--epochs=1", "--out=run", "--fault=core=0,step=2+core=1,step=3,substep=0",
             "--faults=rate=0.05,seed=3"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("step 2: core 0 of 8 died in its substep 0; the step is redone "
                                    "on 7\n"));
  EXPECT_EQ(hash("run"), hash("whole"));
  std::size_t faults = 0;
  for (const json& line : metrics("run")) faults += line["kind"] == "fault" ? 1U : 0U;
  EXPECT_GE(faults, 2U);
  EXPECT_EQ(metrics("run").size(), metrics("whole").size() + faults);

  const auto error = [&](const std::string& option) { return train({option}).err; };
  EXPECT_THAT(error("--fault=3"), HasSubstr("--fault: '3' is malformed; accepted: such as core=3"));
  EXPECT_THAT(error("--fault=core=3"), HasSubstr("there is no 'step'; accepted: such as"));
  EXPECT_THAT(error("--fault=core=3,step=1,speed=2"), HasSubstr("speed"));
  EXPECT_THAT(error("--faults=rate=1"), HasSubstr("--faults"));
  EXPECT_THAT(error("--straggler=core=1,factor=0.5"), HasSubstr("a number from 1"));
  EXPECT_THAT(error("--checkpoint-every=5"),
              HasSubstr("'5' is not an interval; accepted: such as"));
}

TEST_F(ResumeCommand, FaultsThatDoNotHappenAreSaid) {
  const ProgramResult in_vain =
      train({"--epochs=1", "--out=in_vain", "--fault=core=7,step=1+core=0,step=11"});
  EXPECT_EQ(in_vain.code, 0);
  EXPECT_EQ(in_vain.err,
            "rubato train: --fault core=7,step=1 did not happen: the core had no substep in that "
            "step\n"
            "rubato train: --fault core=0,step=11 did not happen: training ended after 10 steps\n");
  EXPECT_THAT(resume("in_vain").err, Not(HasSubstr("core=7")));
}

TEST_F(ResumeCommand, VerifyComparesEveryBit) {
  const auto verify = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"verify", "--data=mnist:data", "--model=softmax", "--trace=trace.csv",
                 "--minibatch=8", "--on-trace-end=cycle", "--threads=2"});
    return test::rubato(more, folder_.path());
  };
  const ProgramResult same = verify({"--rule=adascale", "--optimizer=adam", "--steps=23"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("\n23 steps, 12 ways: the same bits\n"));
  // The ring of 8 cores sums in another order than one core does.
  const ProgramResult other = verify({"--exact=false", "--reduce=ring"});
  EXPECT_EQ(other.code, 23);
  EXPECT_THAT(other.out, AllOf(HasSubstr("DIFFERS\n  differs first after step "),
                               HasSubstr("ways gave other bits than the first in 24 steps")));
  EXPECT_EQ(verify({"--reduce=ring"}).code, 2);
  const ProgramResult diverged = verify({"--lr=1e200"});
  EXPECT_EQ(diverged.code, 22);
  EXPECT_THAT(diverged.err, HasSubstr("try a lower --lr"));
  EXPECT_EQ(verify({"--out=run"}).code, 2);
}

}  // namespace
}  // namespace rubato
