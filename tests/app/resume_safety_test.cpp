#include <csignal>
#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "app/resumed_training.hpp"
#include "app/run_program.hpp"
#include "support/matchers.hpp"

// What a resume, and an output that nobody reads, must not destroy.

namespace rubato {
namespace {

namespace fs = std::filesystem;
using test::ProgramResult;
using test::read_file;

class FinishedRun : public test::ResumedTraining {
 protected:
  // All files of the run and their contents.
  [[nodiscard]] std::map<std::string, std::string> files(const std::string& run) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(file(run))) {
      if (!entry.is_regular_file()) continue;
      files[fs::relative(entry.path(), file(run))] = read_file(entry.path());
    }
    return files;
  }
  void expect_refused(const test::Words& options, const std::string& why) {
    const auto before = files("run");
    const ProgramResult result = resume("run", options);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_EQ(files("run"), before) << "something was touched";
  }
};

TEST_F(FinishedRun, WithoutACheckpointIsLeftAlone) {
  ASSERT_EQ(train("--epochs=1 --out=run --checkpoint-every=never --quiet").code, 0);
  const std::string ended =
      "rubato train: run: the run has ended and left summary.json, but no checkpoint to continue "
      "from; "
      "accepted: a new run, such as rubato train --config run/config.toml\n";
  expect_refused({}, ended);
  expect_refused("--epochs=100", ended);
  expect_refused("--lr=0.5 --epochs=100", ended);
  // Weights that were saved from a full disk.
  fs::remove(file("run/summary.json"));
  expect_refused({}, "the run has ended and left weights.safetensors, but no checkpoint");
}

TEST_F(FinishedRun, ThatDivergedWithoutACheckpointIsLeftAlone) {
  ASSERT_EQ(train("--epochs=1 --out=run --lr=1e38 --momentum=0").code, 22);
  ASSERT_FALSE(fs::exists(file("run/checkpoints")));
  expect_refused({}, "the run has ended and left summary.json, but no checkpoint");
}

// A run that has come to nothing begins anew, but with its own options.
TEST_F(FinishedRun, OptionsAreComparedWithoutACheckpoint) {
  const ProgramResult killed =
      train("--epochs=2 --out=run --checkpoint-every=never" + stuck_after_three_steps(),
            after_lines("run", 3, [](pid_t process) { kill(process, SIGKILL); }));
  ASSERT_EQ(killed.signal, SIGKILL);
  expect_refused("--lr=0.5", "--lr was 0.01, is 0.5\nmay be changed: --on-trace-end, ");
  expect_refused("--clip-norm=3", "--clip-norm was not set, is 3");
  fs::copy(file("data"), file("other"));
  expect_refused("--data=mnist:other", "--data was mnist:");
  expect_refused("--trace=trace.csv", "--trace was trace.csv, is ");
  const std::string config = content("run/config.toml");
  folder_.write("run/config.toml", config + "lr\n");
  expect_refused({}, "run/config.toml:");
  fs::remove(file("run/config.toml"));
  expect_refused({}, "cannot read the configuration run/config.toml");
}

TEST_F(FinishedRun, GoesOnFromANamedCheckpointAndKeepsTheNewerOnes) {
  ASSERT_EQ(train("--epochs=2 --out=whole --keep-best --quiet").code, 0);
  ASSERT_EQ(
      train("--epochs=3 --out=run --keep-best --checkpoint-every=4steps --keep=100 --quiet").code,
      0);
  const auto before = files("run");
  const ProgramResult result = resume("run/checkpoints/step-8.safetensors", {"--epochs=2"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("continuing after step 8 (0 epochs are complete), from "
                              "run/checkpoints/step-8.safetensors\n"),
                    HasSubstr("the steps after step 8 are kept in run/newer-than-step-8, "),
                    HasSubstr("\nepoch 2/2  ")));
  EXPECT_EQ(hash("run"), hash("whole"));
  EXPECT_EQ(metrics("run"), metrics("whole"));
  EXPECT_EQ(content("run/best.safetensors"), content("whole/best.safetensors"));
  // What was newer goes on as any run does.
  // and goes on as any run does.
  const ProgramResult newer = resume("run/newer-than-step-8", "--epochs=4 --quiet");
  EXPECT_EQ(newer.code, 0) << newer.err;
  ASSERT_EQ(resume("run", "--epochs=4 --quiet").code, 0);
  EXPECT_EQ(hash("run/newer-than-step-8"), hash("run"));
  EXPECT_EQ(metrics("run/newer-than-step-8"), metrics("run"));
  // Back once more: another folder.
  ASSERT_EQ(resume("run/checkpoints/step-8.safetensors", {"--quiet"}).code, 0);
  EXPECT_TRUE(fs::exists(file("run/newer-than-step-8-2/summary.json")));
}

TEST_F(FinishedRun, TheNewestCheckpointByNameIsNothingSpecial) {
  ASSERT_EQ(train("--epochs=1 --out=run --quiet").code, 0);
  EXPECT_EQ(resume("run/checkpoints/step-10.safetensors", {"--epochs=2"}).code, 0);
  EXPECT_FALSE(fs::exists(file("run/newer-than-step-10")));
}

TEST_F(FinishedRun, ANamedCheckpointHasToBeThereAndGood) {
  ASSERT_EQ(train("--epochs=1 --out=run --checkpoint-every=4steps --quiet").code, 0);
  const auto error = [&](const std::string& name, const test::Words& more = {}) {
    const auto before = files("run");
    const ProgramResult result = resume("run/checkpoints/" + name, more);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(files("run"), before) << "something was touched";
    return result.err;
  };
  EXPECT_EQ(error("step-5.safetensors"),
            "rubato train: no such checkpoint as run/checkpoints/step-5.safetensors; "
            "accepted: step-10.safetensors, step-8.safetensors, step-4.safetensors\n");
  EXPECT_THAT(error("model.safetensors"), HasSubstr("no such checkpoint as"));
  fs::resize_file(file("run/checkpoints/step-4.safetensors"), 100);
  EXPECT_THAT(error("step-4.safetensors"), HasSubstr("step-4.safetensors: damaged"));
}

// `rubato train | head -2`: nobody reads on.
class LostOutput : public test::ResumedTraining {
 protected:
  ProgramResult train_into(const std::string& to, const std::string& before = "",
                           const std::string& options = "--epochs=3") {
    return test::shell(fmt::format("{}exec \"$0\" {} --out=run --checkpoint-every=never "
                                   "--log-steps=1 {} {}",
                                   before, kOptions, options, to),
                       folder_.path());
  }
  void expect_goes_on(const ProgramResult& result, const std::string& why) {
    EXPECT_EQ(result.signal, 0);
    EXPECT_EQ(result.code, 24);
    EXPECT_EQ(result.err, "rubato train: cannot write the output: " + why +
                              "; to continue: rubato train --resume run\n");
    EXPECT_FALSE(fs::exists(file("run/weights.safetensors")));
    ASSERT_EQ(train("--epochs=3 --out=whole --quiet").code, 0);
    EXPECT_EQ(resume("run", {"--quiet"}).code, 0);
    EXPECT_EQ(hash("run"), hash("whole"));
    EXPECT_EQ(metrics("run"), metrics("whole"));
  }
};

TEST_F(LostOutput, InAClosedPipeIsSaidWithACheckpoint) {
  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  expect_goes_on(train_into(">&4", "exec 3<>pipe 4>pipe 3<&-; "), "Broken pipe");
}

TEST_F(LostOutput, OnAFullDiskIsSaidWithACheckpoint) {
  expect_goes_on(train_into(">/dev/full"), "No space left on device");
}

TEST_F(LostOutput, BeyondAFileSizeLimitIsSaid) {
  // 1 KiB; the metrics are longer, but a file that is there is not cut.
  const ProgramResult result = train_into(">log", "ulimit -f 1; ");
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.code, 24);
  EXPECT_THAT(result.err, HasSubstr("cannot write"));
}

// In the middle of a run that would not end.
TEST_F(LostOutput, AfterSomeLinesEndsTheRun) {
  const ProgramResult result =
      train_into("> >(head -n 2 >head.txt)", "", "--epochs=1000000 --seed=7");
  EXPECT_EQ(result.code, 24);
  EXPECT_THAT(result.err,
              HasSubstr("cannot write the output: Broken pipe; to continue: rubato train"));
  EXPECT_TRUE(fs::exists(file("run/checkpoints")));
}

TEST_F(LostOutput, ThatNobodyHearsOfIsStillAnExitCode) {
  const ProgramResult result = train_into("> >(head -n 1 >head.txt) 2>&1", "", "--epochs=1000000");
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.code, 24);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace rubato
