#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/resumed_training.hpp"
#include "app/run_program.hpp"
#include "base/state/sha256.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::ProgramResult;
using test::read_file;

class ResumeCommand : public test::ResumedTraining {};

TEST_F(ResumeCommand, GoesOnFromTheNewestCheckpointToTheSameResult) {
  ASSERT_EQ(train("--epochs=4 --out=whole --keep-best").code, 0);
  ASSERT_EQ(train("--epochs=2 --out=run --keep-best --checkpoint-every=3steps").code, 0);
  // All at once: more epochs, on others.
  const ProgramResult result =
      resume("run", "--epochs=4 --threads=1 --cores=3 --reduce=sharded --assignment=strided");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("continuing after "), HasSubstr("\nepoch 4/4  "),
                                Not(HasSubstr("\nepoch 2/4  "))));
  EXPECT_EQ(hash("run"), hash("whole"));
  EXPECT_EQ(metrics("run"), metrics("whole"));
  EXPECT_EQ(content("run/best.safetensors"), content("whole/best.safetensors"));
  EXPECT_THAT(content("run/config.toml"), HasSubstr("epochs = 4"));
  // There is nothing left to do, and nothing is done.
  EXPECT_EQ(resume("run").code, 0);
  EXPECT_EQ(metrics("run"), metrics("whole"));
}

TEST_F(ResumeCommand, PassesOverDamagedCheckpoints) {
  ASSERT_EQ(train("--epochs=2 --out=run --checkpoint-every=4steps --keep=100").code, 0);
  const auto expected = metrics("run");
  const std::string weights = hash("run");
  const std::vector<std::string> newest{"step-20.safetensors", "step-16.safetensors",
                                        "step-12.safetensors"};
  const fs::path checkpoints = file("run/checkpoints");
  fs::resize_file(checkpoints / newest[0], fs::file_size(checkpoints / newest[0]) / 2);
  std::string flipped = read_file(checkpoints / newest[1]);
  flipped.at(flipped.size() - 100) ^= 1;
  folder_.write("run/checkpoints/" + newest[1], flipped);
  const ProgramResult result = resume("run", {"--quiet"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr(newest[0] + ": damaged"),
                                HasSubstr(newest[1] + ": damaged"), Not(HasSubstr(newest[2]))));
  EXPECT_EQ(hash("run"), weights);
  EXPECT_EQ(metrics("run"), expected);

  for (const auto& entry : fs::directory_iterator(checkpoints)) fs::resize_file(entry.path(), 20);
  const ProgramResult none = resume("run");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("no checkpoint can be read; accepted:"));
  EXPECT_EQ(metrics("run"), expected) << "nothing was touched";
}

TEST_F(ResumeCommand, RefusesAnotherConfigurationAndSaysWhatMayChange) {
  ASSERT_EQ(train("--epochs=1 --out=run").code, 0);
  const auto before = metrics("run");
  const auto error = [&](const std::string& option) {
    const ProgramResult result = resume("run", option);
    EXPECT_EQ(result.code, 2) << option;
    return result.err;
  };
  EXPECT_THAT(error("--lr=0.5"), AllOf(HasSubstr("--lr was 0.01, is 0.5"),
                                       HasSubstr("may be changed: --on-trace-end, --cores, ")));
  EXPECT_THAT(error("--reduce=ring"), HasSubstr("does not give the same bits"));
  folder_.write("trace2.csv", "step,batchsize\n0,8\n");
  EXPECT_THAT(error("--trace=trace2.csv"), HasSubstr("the trace is not that of the run"));
  // Also when the file of the configuration was changed.
  const std::string config = content("run/config.toml");
  folder_.write("run/config.toml", config + "clip-norm = 1\n");
  EXPECT_THAT(error("--quiet"), HasSubstr("--clip-norm was not set, is 1"));
  folder_.write("run/config.toml", config);
  EXPECT_EQ(metrics("run"), before);
  // The data may lie elsewhere, but must be the same; where they lie now is remembered.
  fs::rename(file("data"), file("moved"));
  EXPECT_EQ(resume("run", "--data=mnist:moved").code, 0);
  EXPECT_EQ(resume("run").code, 0);
  std::string pixels = content("moved/train-images-idx3-ubyte");
  pixels.back() ^= 1;
  folder_.write("moved/train-images-idx3-ubyte", pixels);
  EXPECT_THAT(error("--data=mnist:moved"), HasSubstr("not the data of the run"));
  EXPECT_THAT(resume("nowhere").err,
              HasSubstr("cannot read the configuration nowhere/config.toml"));
}

// A run that was killed before its first checkpoint.
TEST_F(ResumeCommand, BeginsAnewWhereThereIsNoCheckpoint) {
  ASSERT_EQ(train("--epochs=2 --out=whole").code, 0);
  const ProgramResult result =
      train("--epochs=2 --out=run --checkpoint-every=never" + stuck_after_three_steps(),
            after_lines("run", 3, [](pid_t process) { kill(process, SIGKILL); }));
  EXPECT_EQ(result.signal, SIGKILL);
  const ProgramResult again = resume("run", {"--straggler=core=4,factor=1"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("there is no checkpoint yet: the run starts over"));
  EXPECT_EQ(hash("run"), hash("whole"));
  EXPECT_EQ(metrics("run"), metrics("whole"));
}

TEST_F(ResumeCommand, ARunFolderThatHasGoneIsSaid) {
  const ProgramResult result =
      train("--epochs=1000000 --out=run --quiet --checkpoint-every=20steps",
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
      train("--epochs=1000000 --out=run --quiet --checkpoint-every=20steps",
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
  ASSERT_EQ(train("--epochs=9 --out=whole --quiet").code, 0);
  // No file may become longer than 32 KiB: a full disk in small.
  const ProgramResult result =
      test::shell(fmt::format("ulimit -f 32; exec \"$0\" {} --epochs=9 --out='a run' --quiet "
                              "--checkpoint-every=5steps",
                              kOptions),
                  folder_.path());
  EXPECT_EQ(result.code, 24) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot write: File too large"),
                                HasSubstr("to continue: rubato train --resume 'a run'")));
  EXPECT_EQ(resume("a run").code, 0);
  EXPECT_EQ(hash("a run"), hash("whole"));
  EXPECT_EQ(metrics("a run"), metrics("whole"));
}

TEST_F(ResumeCommand, VerifyComparesEveryBit) {
  const auto verify = [&](const std::string& more) {
    return rubato(
        "verify --data=mnist:data --model=softmax --trace=trace.csv --minibatch=8 "
        "--on-trace-end=cycle --threads=2 " +
        more);
  };
  const ProgramResult same = verify("--rule=adascale --optimizer=adam --steps=23");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("\n23 steps, 12 ways: the same bits\n"));
  // The ring of 8 cores sums in another order than one core does.
  const ProgramResult other = verify("--exact=false --reduce=ring");
  EXPECT_EQ(other.code, 23);
  EXPECT_THAT(other.out, AllOf(HasSubstr("DIFFERS\n  differs first after step "),
                               HasSubstr("ways gave other bits than the first in 24 steps")));
  EXPECT_EQ(verify("--reduce=ring").code, 2);
  const ProgramResult diverged = verify("--lr=1e200");
  EXPECT_EQ(diverged.code, 22);
  EXPECT_THAT(diverged.err, HasSubstr("try a lower --lr"));
  EXPECT_EQ(verify("--out=run").code, 2);
}

// One trains, and the other waits for it, as it would a second later.
TEST_F(ResumeCommand, TheSameCommandMayBeStartedTwiceAtOnce) {
  const std::string command = "train --continue --out twice --model softmax --epochs 1 --quiet";
  for (int i = 0; i < 5; ++i) {
    test::BackgroundProgram one(command, folder_.path());
    test::BackgroundProgram other(command, folder_.path());
    one.end();
    other.end();
    EXPECT_EQ(one.code(), 0) << one.output();
    EXPECT_EQ(other.code(), 0) << other.output();
    std::filesystem::remove_all(file("twice"));
  }
  // A command that is refused leaves nothing behind.
  EXPECT_EQ(rubato("train --continue --out refused --model softmax --data nowhere.csv").code, 2);
  EXPECT_FALSE(std::filesystem::exists(file("refused")));
}

}  // namespace
}  // namespace rubato
