// --plugin as users type it, with the plug-in of examples/plugin, with one of each other part, and
// with what is refused.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "base/state/sha256.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

using test::ProgramResult;

using test::Words;

constexpr const char* kYours = "--plugin " RUBATO_YOUR_PARTS " ";
constexpr const char* kEvery = "--plugin " RUBATO_EVERY_PART " ";

class PluginCommand : public test::CommandTest {
 protected:
  [[nodiscard]] ProgramResult run(const Words& command, const Words& more) const {
    return rubato(command + more);
  }
  // With a rule, a sampler and data of the plug-in's.
  [[nodiscard]] ProgramResult run_with_parts(const Words& command, const Words& more) const {
    return rubato(command + more + kYours +
                  "--rule log2 --sampler rotated:by=100 --data rings:noise=0.1 --model "
                  "mlp:hidden=8 --trace 512 --threads 2");
  }
  // What is said of a plug-in that is refused.
  [[nodiscard]] std::string refused(const std::string& plugin) const {
    return refusal("list --plugin " + plugin);
  }
};

TEST_F(PluginCommand, ListShowsWhatItBrings) {
  const ProgramResult all = run("list", kYours);
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("lbsgd, log2"), HasSubstr("rings"), HasSubstr("rotated")));
  EXPECT_THAT(run("list", kYours + Words("rules data")).out,
              AllOf(HasSubstr("\nlog2\n    log2(1 + S) lr\n"),
                    ContainsRegex("\nrings\n    points of two rings.*\n    noise +0.2 +a number of "
                                  "at least 0\n")));
  EXPECT_EQ(run("list", {}).out.find("log2"), std::string::npos) << "without it there are none";
}

TEST_F(PluginCommand, ARuleOfItsHasARunFolder) {
  const ProgramResult trained = run_with_parts("train", "--epochs 10 --lr 0.2 --out run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_GT(summary("run")["final_test_accuracy"], 0.9);
  EXPECT_THAT(content("run/metrics.jsonl"), HasSubstr("\"scale\":4"));
  const std::string sha256 = Sha256::hex_of_file(RUBATO_YOUR_PARTS);
  EXPECT_THAT(content("run/config.toml"),
              HasSubstr("plugin = \"given-plugin.so,sha256=" + sha256 + "\"\n"));
  EXPECT_EQ(Sha256::hex_of_file(file("run/given-plugin.so")), sha256);
  // The folder alone says it all, wherever it is.
  fs::rename(file("run"), file("moved"));
  const ProgramResult again = run("train", "--config moved/config.toml --out again");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(hash("again"), hash("moved"));
}

TEST_F(PluginCommand, ARuleOfItsGoesOnToTheSameBits) {
  ASSERT_EQ(run_with_parts("train", "--epochs 4 --out whole").code, 0);
  ASSERT_EQ(run_with_parts("train", "--epochs 2 --out part").code, 0);
  const ProgramResult resumed = run("train", "--resume part --epochs 4");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(hash("part"), hash("whole"));
  // Elsewhere the same file is the same.
  fs::copy_file(RUBATO_YOUR_PARTS, file("copy.so"));
  const ProgramResult copied = run("train", "--resume part --plugin copy.so --epochs 5");
  EXPECT_EQ(copied.code, 0) << copied.err;
}

TEST_F(PluginCommand, AResumeIsBoundToItsContent) {
  ASSERT_EQ(run_with_parts("train", "--epochs 1 --out run").code, 0);
  const std::string sha256 = Sha256::hex_of_file(RUBATO_YOUR_PARTS);
  const ProgramResult other = run("train --resume run --epochs 2", Words(kYours) + kEvery);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, AllOf(StartsWith("rubato train: the run was trained with other options: "
                                          "--plugin was "),
                               HasSubstr("sha256=" + sha256)));
  std::ofstream(file("run/given-plugin.so"), std::ios::app) << "more";
  const ProgramResult changed = run("train", "--resume run --epochs 2");
  EXPECT_EQ(changed.code, 2);
  EXPECT_THAT(changed.err, ContainsRegex("run/config.toml:[0-9]+: plugin: run/given-plugin.so has "
                                         "the SHA-256 [0-9a-f]+, not " +
                                         sha256 + "; accepted: the file as it was\n$"));
}

TEST_F(PluginCommand, ARuleOfItsIsComparedAndVerified) {
  const ProgramResult compared = run_with_parts(
      "compare", "--rule linear --seed 1..2 --epochs 1 --ref-batch 128 --tune never --out e");
  ASSERT_EQ(compared.code, 0) << compared.err;
  const auto answer = nlohmann::json::parse(content("e/answer.json"));
  EXPECT_THAT(compared.out, AllOf(HasSubstr("log2"), HasSubstr("linear")));
  EXPECT_TRUE(fs::exists(file("e/runs/512_log2_seed-1/given-plugin.so")));
  const ProgramResult more = run("compare", "--resume e --seed 1..3");
  EXPECT_EQ(more.code, 0) << more.err;
  const ProgramResult verified = run_with_parts("verify", "--steps 6");
  EXPECT_EQ(verified.code, 0) << verified.err << verified.out;
}

// To the last digit what training comes to.
TEST_F(PluginCommand, ABatchPolicyOfItsIsSimulated) {
  const std::string asked =
      std::string(kEvery) +
      "--model quadratic --trace 64 --batch doubled:max=256 --epochs 3 --cluster "
      "substep=0.1,bytes=1000";
  const std::string simulated = succeeds("simulate --json " + asked);
  succeeds("train --clock virtual --out run " + asked);
  const auto row = nlohmann::json::parse(simulated)[0];
  EXPECT_EQ(row["steps"], summary("run")["steps"]);
  EXPECT_EQ(row["clock"]["hours"], summary("run")["clock"]["hours"]);
  const ProgramResult blind = run("simulate", "--batch noise-scale:max=256");
  EXPECT_EQ(blind.code, 2);
  EXPECT_THAT(blind.err, HasSubstr("known only while training"));
}

TEST_F(PluginCommand, EveryPartIsTakenByItsOption) {
  const std::string parts =
      std::string(kEvery) +
      "--schedule inverse-time:after=1 --optimizer descent --transform "
      "noise:deviation=0.001+largest:kept=80 --reduce pairwise --model softmax ";
  succeeds("train --metric steps --epochs 2 --out run " + parts);
  EXPECT_THAT(content("run/metrics.jsonl"), HasSubstr("\"steps\":"));
  succeeds("verify --steps 6 " + parts);
  EXPECT_THAT(
      refusal("train" + Words(kEvery) + "--optimizer descent --momentum 0.9"),
      HasSubstr("--momentum: it applies to built-in optimizers only, and descent is not one"));
}

// Its metric of the epoch is the same in every epoch, so that it never improves.
TEST_F(PluginCommand, AMetricOfItsIsWatched) {
  const std::string watching = std::string("train ") + kEvery +
                               "--model softmax --watch steps --patience 2 --epochs 9 --trace 512 ";
  EXPECT_EQ(refusal(watching),
            "rubato train: --watch steps: nothing computes it; accepted: with --metric steps\n");
  succeeds(watching + "--metric steps --keep-best --out run");
  EXPECT_EQ(summary("run")["epochs"], 3);
  EXPECT_TRUE(fs::exists(file("run/best.safetensors")));
  EXPECT_THAT(refusal(watching + "--metric steps --schedule plateau:mode=max"),
              HasSubstr("steps is watched, which is better when it is smaller"));
}

TEST_F(PluginCommand, WrongNamesAreAnsweredWithTheNearestOfAll) {
  for (const auto& [option, message] : std::vector<std::pair<std::string, std::string>>{
           {"--rule lgo2", "unknown rule 'lgo2'; did you mean 'log2'?"},
           {"--data ringz", "did you mean 'rings'?"},
           {"--data rings:nose=1", "noise"},
           {"--sampler rotate", "did you mean 'rotated'?"},
           {"--schedule inverse", "did you mean 'inverse-time'?"},
           {"--optimizer decent", "did you mean 'descent'?"},
           {"--transform nois", "did you mean 'noise'?"},
           {"--transform largset", "did you mean 'largest'?"},
           {"--reduce pairwize", "did you mean 'pairwise'?"},
           {"--metric stesp", "did you mean 'steps'?"},
           {"--watch stesp", "did you mean 'steps'?"},
           {"--batch doubeld", "did you mean 'doubled'?"}}) {
    EXPECT_THAT(refusal("train" + Words(kYours) + kEvery + option), HasSubstr(message));
  }
}

TEST_F(PluginCommand, WhatIsNoneIsRefusedInALine) {
  EXPECT_THAT(refused("nothing.so"),
              "rubato list: --plugin: no such file as nothing.so; accepted: a shared library\n");
  folder_.write("text.so", "words");
  EXPECT_THAT(refused("text.so"), AllOf(StartsWith("rubato list: --plugin: cannot load text.so: "),
                                        EndsWith("; accepted: a shared library\n")));
  EXPECT_THAT(
      refused(RUBATO_BAD_NO_ENTRY),
      AllOf(HasSubstr("is not a plug-in of rubato; accepted: a library with an entry point")));
  EXPECT_THAT(refused(RUBATO_BAD_OLDER),
              ContainsRegex("was compiled for rubato 0.0.9-0123456789ab, C\\+\\+ ABI [0-9]+/1, and "
                            "this is rubato [0-9.]+-[0-9a-f]{12}, C\\+\\+ ABI [0-9]+/1; accepted: "
                            "one compiled anew\n$"));
  EXPECT_THAT(refused(RUBATO_BAD_THROWS), EndsWith(": the licence has expired\n"));
  EXPECT_THAT(refused(RUBATO_BAD_THROWS_NUMBER),
              EndsWith(" throws something that is not a std::exception\n"));
  EXPECT_THAT(refused(RUBATO_BAD_TAKEN), EndsWith(": there is a sampler 'in-order' already\n"));
  EXPECT_THAT(refused("a.so,sha256=12"), HasSubstr("'a.so,sha256=12' is not a plug-in; accepted"));
  EXPECT_THAT(refusal("list" + Words(kYours) + kYours),
              EndsWith(": there is a rule 'log2' already\n"));
}

TEST_F(PluginCommand, AConfigurationNamesIt) {
  fs::copy_file(RUBATO_YOUR_PARTS, file("mine.so"));
  folder_.write("c.toml",
                "rule = \"log2\"\nplugin = \"mine.so\"\nmodel = \"softmax\"\nepochs = 1\n");
  EXPECT_EQ(run("train", "--config c.toml --out run").code, 0);
  folder_.write("wrong.toml", "rule = \"log2\"\nplugin = \"none.so\"\n");
  EXPECT_THAT(run("train", "--config wrong.toml").err,
              HasSubstr("wrong.toml:2: plugin: no such file as none.so"));
  // One in the arguments stands in its place.
  EXPECT_EQ(
      run("train", "--config wrong.toml --plugin mine.so --model softmax --epochs 1 --out other")
          .code,
      0);
}

// Whatever it throws: which part, whose, in which step, and how the run goes on.
TEST_F(PluginCommand, SaysWhatARuleOfItsHasThrown) {
  for (const auto& [how, words] : std::vector<std::pair<std::string, std::string>>{
           {"error", "no licence"},
           {"exception", "no licence"},
           {"number", "an exception that is not a std::exception"}}) {
    SCOPED_TRACE(how);
    const ProgramResult result =
        run("train" + Words(kEvery),
            "--rule failing:how=" + how + " --model softmax --trace 64 --out run-" + how);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, ContainsRegex("rubato train: rule failing:how=" + how +
                                          " \\(of --plugin .*\\) at "
                                          "epoch 1, step 4 of the run: " +
                                          words +
                                          "\nafter 3 steps; the "
                                          "checkpoint is run-" +
                                          how +
                                          "/checkpoints/step-3.safetensors; to "
                                          "continue: rubato train --resume run-" +
                                          how + "\n$"));
    EXPECT_EQ(run("train", "--resume run-" + how).code, 2) << "it throws again";
  }
  EXPECT_THAT(run("train" + Words(kEvery), "--rule failing --model softmax").err,
              ContainsRegex("step 4 of the run: no licence\n"));
}

TEST_F(PluginCommand, SaysWhatOtherPartsOfItsHaveThrown) {
  const auto said = [&](const Words& more) {
    const ProgramResult result = run("train" + Words(kEvery), "--model softmax --trace 512" + more);
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  EXPECT_THAT(
      said("--sampler failing --out s"),
      ContainsRegex("sampler failing \\(of --plugin .*\\) at epoch 2, step 24 of the run: no "
                    "order\nafter 23 steps; the checkpoint is s/"));
  EXPECT_THAT(
      said("--metric failing --out m"),
      ContainsRegex("metric failing \\(of --plugin .*\\) after epoch 1: an exception that is not a "
                    "std::exception\nafter 23 steps; the checkpoint is m/"));
  const ProgramResult verified =
      run("verify" + Words(kEvery), "--model softmax --trace 512 --sampler failing --steps 30");
  EXPECT_EQ(verified.code, 2);
  EXPECT_THAT(verified.err, ContainsRegex("^rubato verify: --plugin .*: no order\n$"));
  EXPECT_EQ(said("--rule unmade"),
            "rubato train: --rule: rule unmade cannot be made: no licence\n");
  EXPECT_EQ(
      said("--rule unmade:number=true"),
      "rubato train: --rule: rule unmade cannot be made: its maker threw something that is not a "
      "std::exception\n");
  EXPECT_THAT(said("--schedule unmade"), HasSubstr("schedule unmade cannot be made: its maker"));
}

// The thread that throws is not the one that trains: it ends the process, as one of gloo's could.
TEST_F(PluginCommand, AThreadOfItsThatThrowsLeavesACheckpoint) {
  const ProgramResult result =
      run("train" + Words(kEvery),
          "--rule failing:how=thread --model softmax --trace 64 --epochs 100000 --checkpoint-every "
          "never --quiet --out ended");
  EXPECT_EQ(result.signal, SIGABRT);
  EXPECT_THAT(result.err, HasSubstr("no licence"));
  EXPECT_FALSE(std::filesystem::is_empty(file("ended/checkpoints")));
}

TEST_F(PluginCommand, ARuleOfItsThatCrashesIsFailedTheSecondTime) {
  const ProgramResult first = run("compare" + Words(kEvery),
                                  "--rule failing:how=crash --seed 1 --model softmax --samples "
                                  "3200 --trace 64 --tune never --out e");
  EXPECT_EQ(first.code, 27) << first.err;
  EXPECT_THAT(first.out, HasSubstr("missing"));
  const ProgramResult second = run("compare", "--resume e");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(content("e/answer.md"), HasSubstr("for the second time"));
}

#if RUBATO_TORCH
// The other half of the program loads it, too.
TEST_F(PluginCommand, LibtorchTrainsAndEvaluatesWithIt) {
  const ProgramResult trained = run_with_parts("train", "--engine libtorch --epochs 1 --out run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const ProgramResult evaluated = run("eval", "run --json");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NEAR(nlohmann::json::parse(evaluated.out)["accuracy"].get<double>(),
              summary("run")["final_test_accuracy"].get<double>(), 1e-9);
}
#endif

}  // namespace
}  // namespace rubato
