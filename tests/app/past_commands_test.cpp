// Forks of runs, and steps that are repeated, as users ask for them.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "support/changed_state.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Words;

class PastCommands : public test::CommandTest {
 protected:
  // A run of 48 steps, with the checkpoint of step 48 alone.
  void train(const std::string& name, const Words& more = {}) const {
    succeeds("train --model softmax --epochs 1 --quiet --digest every=1 --out " + name + more);
  }
  // The steps without how long they took.
  [[nodiscard]] std::vector<json> steps(const std::string& run) const {
    std::vector<json> lines = records(run, "step");
    for (json& line : lines) line.erase("seconds");
    return lines;
  }
};

TEST_F(PastCommands, AForkSaysWhereItComesFrom) {
  train("run");
  const std::string printed = succeeds("train --from run@20 --rule root --lr 0.02 --out fork");
  const std::string note = "run after step 20 \\(digest [0-9a-f]{32}\\), with another rule, lr\n";
  EXPECT_THAT(printed, AllOf(StartsWith("repeating steps 1 to 20 of run\n"),
                             ContainsRegex("\na fork of " + note)));
  EXPECT_THAT(content("fork/config.toml"),
              AllOf(ContainsRegex("^# A fork: " + note), HasSubstr("/run@20\"\n")));
  EXPECT_EQ(records("fork", "step").size(), 48U);
  // A resume keeps the line.
  succeeds("train --resume fork --epochs 2 --quiet");
  EXPECT_THAT(content("fork/config.toml"), ContainsRegex("^# A fork: " + note));
  EXPECT_GT(records("fork", "step").size(), 48U);
}

TEST_F(PastCommands, AForkRefusesWhatItCannotDo) {
  train("run");
  EXPECT_THAT(refusal("train --from run@49 --out fork"), HasSubstr("run has 48 steps"));
  EXPECT_THAT(refusal("train --from run --out fork"), HasSubstr("accepted: RUN@STEP"));
  EXPECT_THAT(refusal("train --from run@1 --resume run"),
              HasSubstr("--from: --resume has a configuration of its own"));
  EXPECT_THAT(refusal("train --from run@1 --config run/config.toml --out fork"),
              HasSubstr("has a configuration of its own"));
  EXPECT_FALSE(fs::exists(file("fork")));
  EXPECT_FALSE(fs::exists(file("fork.replay")));
}

TEST_F(PastCommands, AForkRemovesNoFolderThatIsNotItsOwn) {
  train("run");
  folder_.write("fork.replay/mine.txt", "mine");
  succeeds("train --from run@20 --out fork --quiet");
  EXPECT_EQ(content("fork.replay/mine.txt"), "mine");
  // One with a configuration of its own, one that is no configuration, and that of another fork.
  folder_.write("a/config.toml", "epochs = 3\n");
  folder_.write("b/config.toml", "[mine]\n");
  fs::copy(file("fork"), file("c"), fs::copy_options::recursive);
  for (const char* name : {"checkpoints", "summary.json", "weights.safetensors"}) {
    fs::remove_all(file("c") / name);
  }
  for (const std::string name : {"a", "b", "c"}) {
    EXPECT_EQ(rubato("train --from run@21 --continue --out " + name).code, 2) << name;
    EXPECT_TRUE(fs::exists(file(name) / "config.toml")) << name;
  }
}

TEST_F(PastCommands, AReplayWritesWhatWasNotWritten) {
  train("run");
  EXPECT_EQ(printed("replay run --steps 20..30 --log-minibatches --log-noise --weights 5"),
            "repeating steps 1 to 19 of run\nrepeating steps 20 to 30 of run\n"
            "steps 20 to 30: 11 digests compared, the same bits\nrecords in run/replays/20-30\n");
  const std::vector<json> all = steps("run");
  std::vector<json> repeated = steps("run/replays/20-30");
  for (json& step : repeated) {
    for (const char* key : {"noise_scale", "measured_gain", "gradient_norm"}) step.erase(key);
  }
  EXPECT_EQ(repeated, std::vector<json>(all.begin() + 19, all.begin() + 30));
  EXPECT_THAT(records("run", "minibatch"), IsEmpty());
  EXPECT_GE(records("run/replays/20-30", "minibatch").size(), 22U);
  EXPECT_TRUE(records("run/replays/20-30", "step").back().contains("noise_scale"));
  for (const char* name : {"step-20", "step-25", "step-30"}) {
    EXPECT_TRUE(
        fs::exists(file(std::string("run/replays/20-30/weights/") + name + ".safetensors")));
  }
  EXPECT_THAT(succeeds("metrics run/replays/20-30"), HasSubstr("\n29,0,"));
  EXPECT_THAT(refusal("replay run --steps 40..50"), HasSubstr("has 48 steps; accepted: 1..48"));
  EXPECT_THAT(refusal("replay run"), HasSubstr("--steps: none are given"));
}

TEST_F(PastCommands, AReplayGoesOnWhereItWasInterrupted) {
  train("run", "--epochs 14");
  const Words command = "replay run --steps 2..500 --log-minibatches --quiet";
  const test::ProgramResult killed = rubato(command, [&](pid_t process, const fs::path&) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!fs::exists(file("run/replays/2-500/checkpoints/step-1.safetensors")) &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(process, SIGKILL);
  });
  // On a loaded machine it may have ended before.
  EXPECT_THAT(killed.code, AnyOf(0, -1));
  succeeds(command);
  EXPECT_EQ(records("run/replays/2-500", "step").size(), 499U);
  // What is there is not computed again, and other records of the same steps lie beside it.
  EXPECT_EQ(printed("replay run --steps 2..500 --log-minibatches"),
            "steps 2 to 500: 499 digests compared, the same bits\n"
            "records in run/replays/2-500\n");
  EXPECT_THAT(succeeds("replay run --steps 2..500"), HasSubstr("records in run/replays/2-500-2\n"));
}

TEST_F(PastCommands, AReplaySaysWhatItHasCompared) {
  succeeds("train --model softmax --epochs 1 --quiet --digest never --out run");
  EXPECT_THAT(succeeds("replay run --steps 3..7"),
              HasSubstr("\nsteps 3 to 7: no digests, 5 losses compared, the same\n"));
}

TEST_F(PastCommands, WarnInTheirOwnNames) {
  train("run", "--checkpoint-every 10steps --keep 9");
  folder_.write("run/checkpoints/step-20.safetensors", "damaged");
  EXPECT_THAT(rubato("replay run --steps 22..23").err, StartsWith("rubato replay: "));
  EXPECT_THAT(rubato("train --from run@22 --quiet --out fork").err, StartsWith("rubato train: "));
  EXPECT_THAT(rubato("train --from run@22 --lr 0.02 --quiet --out other").code, 0);
  EXPECT_THAT(rubato("diff run other --distance 0").err, StartsWith("rubato diff: "));
}

TEST_F(PastCommands, AReplayFindsTheStepWithOtherBits) {
  train("run", "--checkpoint-every 10steps --keep 9 --momentum 0.9");
  const fs::path checkpoint = file("run/checkpoints/step-10.safetensors");
  const std::string good = test::read_file(checkpoint);
  for (const char* part : {"parameter.", "optimizer.velocity"}) {
    folder_.write("run/checkpoints/step-10.safetensors", good);
    test::flip_bits(checkpoint, part);
    const test::ProgramResult result = rubato("replay run --steps 11..20");
    EXPECT_EQ(result.code, 23) << result.err;
    EXPECT_THAT(result.out, HasSubstr("step-10.safetensors: the state has the digest")) << part;
    fs::remove_all(file("run/replays"));
  }
  succeeds("replay run --steps 21..30");
}

}  // namespace
}  // namespace rubato
