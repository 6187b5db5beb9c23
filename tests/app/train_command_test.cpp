#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/run_program.hpp"
#include "app/small_training.hpp"
#include "base/machine/instruction_set.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::ProgramResult;
using test::read_file;
using testing::AllOf;
using testing::HasSubstr;

// Uneven substeps, idle cores, and 3 epochs of 40 minibatches.
class TrainCommand : public test::SmallTraining {
 protected:
  void SetUp() override {
    SmallTraining::SetUp();
    std::vector<int> trace;
    for (int epoch = 0; epoch < 3; ++epoch) {
      trace.insert(trace.end(), {8, 64, 24, 8, 64, 24, 8, 64, 24, 32});
    }
    write_trace(trace);
  }

  ProgramResult train(std::vector<std::string> more) {
    std::vector<std::string> arguments{"train",   "--data",    "mnist:data",  "--model", "softmax",
                                       "--trace", "trace.csv", "--minibatch", "8",       "--epochs",
                                       "3",       "--threads", "2",           "--lr",    "0.05"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::rubato(arguments, folder_.path());
  }
};

// The OpenMP of libtorch would bind the process, which has no threads of OpenMP.
TEST_F(TrainCommand, HasAllCpusWhateverOpenMpIsTold) {
  const auto threads_with = [&](const std::string& variable) {
    const ProgramResult result = test::shell(
        variable +
            " exec \"$0\" train --engine libtorch --data mnist:data --model softmax --trace "
            "trace.csv --minibatch 8 --epochs 1 --out run" +
            std::to_string(variable.size()),
        folder_.path());
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const std::size_t end = result.out.find(" threads, seed");
    return result.out.substr(result.out.rfind(' ', end - 1), 12);
  };
  const std::string all = threads_with("");
  EXPECT_EQ(threads_with("OMP_PROC_BIND=true"), all);
  EXPECT_EQ(threads_with("OMP_PLACES='{0}'"), all);
  EXPECT_EQ(threads_with("GOMP_CPU_AFFINITY=0"), all);
}

TEST_F(TrainCommand, LeavesARunFolderThatSaysItAll) {
  const ProgramResult result = train({"--out", "run"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("softmax on mnist:data: 320 training and 100 test images"),
            HasSubstr("\nepoch 1/3  step 10  batch "), HasSubstr("\nepoch 3/3  step 30  batch "),
            HasSubstr("\ntest accuracy "), HasSubstr("\nrun folder run\n")));

  const json run = summary("run");
  EXPECT_GT(run["final_test_accuracy"], 0.9) << "the classes are easy";
  EXPECT_GE(run["best_test_accuracy"], run["final_test_accuracy"]);
  EXPECT_EQ(run["epochs"], 3);
  EXPECT_EQ(run["steps"], 30);
  EXPECT_EQ(run["samples"], 960);
  EXPECT_EQ(run["threads"], 2);
  EXPECT_EQ(run["cores"], 8);
  EXPECT_EQ(run["seed"], 42);
  EXPECT_EQ(std::string(run["weights_sha256"]).size(), 64U);
  EXPECT_GT(run["samples_per_second"], 0);
  EXPECT_GT(run["wall_seconds"], 0);
  EXPECT_TRUE(run["stopped"].is_null());

  std::vector<std::string> kinds;
  std::int64_t step = 0;
  std::ifstream metrics(file("run/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) {
    const json record = json::parse(line);
    kinds.push_back(record["kind"]);
    if (record["kind"] != "step") continue;
    EXPECT_EQ(record["step"], step++);
    EXPECT_DOUBLE_EQ(record["lr"], 0.05 * static_cast<double>(record["batch"]) / 128);
    EXPECT_EQ(record["substeps"].size(), 8U);
  }
  EXPECT_EQ(kinds.size(), 33U);
  EXPECT_EQ(kinds[9], "step");
  EXPECT_EQ(kinds[10], "epoch");
  EXPECT_EQ(read_file(file("run/trace.csv")), read_file(file("trace.csv")));
}

// Every option of the techniques does something that is seen.
TEST_F(TrainCommand, TechniquesLeaveTheirTraces) {
  const ProgramResult result = train({"--out",           "run",
                                      "--rule",          "adascale:smoothing=0.9,ramp=2",
                                      "--schedule",      "warmup:length=10",
                                      "--schedule-unit", "steps",
                                      "--clip-norm",     "0.5",
                                      "--log-noise",     "--keep-best",
                                      "--top-k",         "3",
                                      "--monitor",       "*.weight",
                                      "--monitor-every", "4",
                                      "--iterations",    "6"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("\nstopped: 6 iterations reached\n"), HasSubstr("  top-3 accuracy "),
                    HasSubstr("\nbest weights are those of ")));
  EXPECT_TRUE(fs::exists(file("run/best.safetensors")));
  const json run = summary("run");
  EXPECT_EQ(run["stopped"], "6 iterations reached");
  EXPECT_GE(run["iterations"], 6);
  EXPECT_LT(run["steps"], 30);
  EXPECT_GE(run["final_test_top_k_accuracy"], run["final_test_accuracy"]);

  std::ifstream metrics(file("run/metrics.jsonl"));
  std::int64_t steps = 0;
  std::int64_t monitored = 0;
  double iterations = 0;
  for (std::string text; std::getline(metrics, text);) {
    const json line = json::parse(text);
    if (line["kind"] == "step") {
      if (steps == 0) {
        EXPECT_EQ(line["lr"], 0) << "the warm-up begins";
      }
      ++steps;
      iterations += line["gain"].get<double>();
      EXPECT_DOUBLE_EQ(line["iterations"], iterations);
      EXPECT_GT(line["gradient_norm"], 0);
      if (line["batch"] == 64) {
        EXPECT_GT(line["measured_gain"], 0);
      }
    } else if (line["kind"] == "monitor") {
      ++monitored;
      EXPECT_EQ(line["tensor"], "linear.weight");
      EXPECT_EQ(line["of"], monitored % 2 == 1 ? "parameter" : "gradient");
      EXPECT_GE(line["max"], line["min"]);
    } else {
      EXPECT_TRUE(line.contains("test_top_k_accuracy"));
    }
  }
  EXPECT_EQ(steps, run["steps"]);
  EXPECT_EQ(monitored, 2 * ((steps + 3) / 4)) << "steps 0, 4, 8, ...";
}

TEST_F(TrainCommand, EachTechniqueChangesTheResult) {
  std::set<std::string> hashes;
  const std::vector<std::vector<std::string>> techniques{
      {},
      {"--rule=adascale"},
      {"--rule=lbsgd:warmup=power2,epochs=1"},
      {"--rule=lbsgd:warmup=lars"},
      {"--rule=linear:ramp=3"},
      {"--schedule=cosine:total=30", "--schedule-unit=steps"},
      {"--optimizer=lars"},
      {"--optimizer=adam"},
      {"--optimizer=adamw:beta1=0.5"},
      {"--optimizer=rmsprop"},
      {"--optimizer=adagrad"},
      {"--momentum=0.9"},
      {"--momentum=0.9", "--nesterov"},
      {"--weight-decay=0.1"},
      {"--weight-decay=0.1", "--no-decay=vectors"},
      {"--clip-norm=0.1"},
      {"--lookahead=3"},
      {"--lookahead=3", "--lookahead-alpha=0.8"},
      {"--lookahead=3", "--lookahead-start=after"},
      {"--init=xavier"},
      {"--precision=bf16"},
      {"--label-smoothing=0.1"},
  };
  for (std::size_t i = 0; i < techniques.size(); ++i) {
    const std::string name = fmt::format("run{}", i);
    std::vector<std::string> arguments = techniques[i];
    arguments.insert(arguments.end(), {"--out", name, "--epochs", "1"});
    const ProgramResult result = train(arguments);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(hashes.insert(hash(name)).second) << testing::PrintToString(techniques[i]);
  }
}

TEST_F(TrainCommand, OperatorsAreTheUsersChoiceAndBindTheRun) {
  if (cpu_instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "needs AVX2 and FMA";
  write_trace({64, 64});
  const auto of = [&](const std::string& operators) {
    const ProgramResult result =
        test::rubato({"train", "--model=mnist-cnn", "--trace=trace.csv", "--epochs=1",
                      "--on-trace-end=stop", "--out=" + operators, "--operators=" + operators},
                     folder_.path());
    EXPECT_EQ(result.code, 0) << result.err;
    return hash(operators);
  };
  const std::set<std::string> hashes{of("all"), of("none"), of("convolution"), of("batch-norm")};
  EXPECT_EQ(hashes.size(), 4);
  EXPECT_EQ(of("max-pool"), hash("none"));
  EXPECT_EQ(of("batch-norm,convolution"), hash("all"));
  EXPECT_THAT(test::rubato({"train", "--resume=all", "--operators=none"}, folder_.path()).err,
              HasSubstr("--operators was all, is none"));
}

TEST_F(TrainCommand, TheLossScaleIsTheUsers) {
  const ProgramResult result =
      train({"--out=run", "--epochs=1", "--precision=fp16:scale=512,interval=4,growth=4"});
  ASSERT_EQ(result.code, 0) << result.err;
  std::vector<double> scales;
  std::ifstream metrics(file("run/metrics.jsonl"));
  for (std::string text; std::getline(metrics, text);) {
    const json line = json::parse(text);
    if (line["kind"] == "step") scales.push_back(line["loss_scale"]);
  }
  EXPECT_THAT(scales, testing::ElementsAre(512, 512, 512, 512, 2048, 2048, 2048, 2048, 8192, 8192));
  EXPECT_EQ(summary("run")["skipped_steps"], 0);
}

TEST_F(TrainCommand, StopsEarlyWhenNothingImproves) {
  // No rounding comes to the difference that is asked for: the weights stay where they are, but the
  // minibatches are others in every epoch, and are summed in another order.
  const ProgramResult result = train({"--out", "run", "--lr", "1e-30", "--patience", "1", "--watch",
                                      "train-loss", "--min-delta", "0.01"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(summary("run")["stopped"], "train-loss no longer improves");
  EXPECT_EQ(summary("run")["epochs"], 2);
}

TEST_F(TrainCommand, TheConfigurationInTheRunFolderReproducesTheRun) {
  ASSERT_EQ(train({"--out", "run", "--seed", "7", "--rule", "root", "--nesterov"}).code, 0);
  // From elsewhere, after the folder was moved and the trace it was made from is gone.
  fs::create_directory(file("elsewhere"));
  fs::rename(file("run"), file("elsewhere/moved"));
  fs::remove(file("trace.csv"));
  const ProgramResult again =
      test::rubato({"train", "--config", "elsewhere/moved/config.toml", "--out", "again"},
                   file("elsewhere").parent_path());
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(hash("again"), hash("elsewhere/moved"));
}

TEST_F(TrainCommand, ThreadsCoresAndAssignmentChangeNoBit) {
  ASSERT_EQ(train({"--out", "run"}).code, 0);
  const std::vector<std::vector<std::string>> variants{
      {"--threads", "1"}, {"--cores", "1"}, {"--cores", "64"}, {"--assignment", "strided"}};
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::string out = "variant" + std::to_string(i);
    auto arguments = variants[i];
    arguments.insert(arguments.end(), {"--out", out});
    ASSERT_EQ(train(arguments).code, 0);
    EXPECT_EQ(hash(out), hash("run")) << variants[i][0] << " " << variants[i][1];
  }
  ASSERT_EQ(train({"--seed", "43", "--out", "other"}).code, 0);
  EXPECT_NE(hash("other"), hash("run")) << "a hash that cannot differ proves nothing";
}

TEST_F(TrainCommand, AMissedTargetIsExitCode21) {
  EXPECT_EQ(train({"--out", "met", "--target-accuracy", "50"}).code, 0);
  const ProgramResult missed =
      train({"--out", "missed", "--target-accuracy", "100", "--lr", "1e-6"});
  EXPECT_EQ(missed.code, 21);
  EXPECT_THAT(missed.err,
              AllOf(HasSubstr("test accuracy "), HasSubstr("below --target-accuracy 100 %")));
  EXPECT_TRUE(fs::exists(file("missed/weights.safetensors")));
}

TEST_F(TrainCommand, PatternsThatMatchNothingAreErrorsBeforeThereIsARunFolder) {
  const auto error = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"--out=run", "--weight-decay=0.1"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProgramResult result = train(all);
    EXPECT_EQ(result.code, 2);
    EXPECT_FALSE(fs::exists(file("run")));
    return result.err;
  };
  EXPECT_EQ(
      error({"--no-decay=*.bias,conv*"}),
      "rubato train: --no-decay: no parameter matches 'conv*'; the model's are linear.weight, "
      "linear.bias\n");
  EXPECT_EQ(error({"--monitor=conv*"}),
            "rubato train: --monitor: no parameter matches 'conv*'; the model's are linear.weight, "
            "linear.bias\n");
  const ProgramResult verify =
      test::rubato({"verify", "--data=mnist:data", "--model=softmax", "--trace=trace.csv",
                    "--minibatch=8", "--epochs=3", "--weight-decay=0.1", "--no-decay=conv*"},
                   folder_.path());
  EXPECT_EQ(verify.code, 2);
  EXPECT_THAT(verify.err, HasSubstr("--no-decay: no parameter matches 'conv*'"));
}

TEST_F(TrainCommand, ALossThatIsNoNumberStopsTheRunAndKeepsItsMetrics) {
  const ProgramResult result = train({"--out", "run", "--lr", "1e38", "--rule", "constant"});
  EXPECT_EQ(result.code, 22);
  EXPECT_THAT(result.err, AllOf(HasSubstr("at epoch 1, step "), HasSubstr("rule constant"),
                                HasSubstr("lr 1e+38"), HasSubstr("metrics are kept in run")));
  EXPECT_THAT(read_file(file("run/metrics.jsonl")),
              AllOf(HasSubstr("\"loss\":null"), HasSubstr("\"applied\":false")));
  EXPECT_THAT(std::string(summary("run")["stopped"]), HasSubstr("at epoch 1, step "));
}

TEST_F(TrainCommand, AnExistingRunFolderIsLeftAlone) {
  folder_.write("run/weights.pt", "mine");
  const ProgramResult result = train({"--out", "run"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("run"), HasSubstr("exists")));
  EXPECT_EQ(read_file(file("run/weights.pt")), "mine");
}

TEST_F(TrainCommand, BadDataIsAnErrorAndLeavesNoRunFolder) {
  const std::string images = read_file(file("data/train-images-idx3-ubyte"));
  folder_.write("data/train-images-idx3-ubyte", std::string_view(images).substr(0, 1000));
  const ProgramResult result = train({"--out", "run"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("train-images-idx3-ubyte"));
  EXPECT_FALSE(fs::exists(file("run")));
}

TEST_F(TrainCommand, WhatFollowsTheTraceIsTheUsersChoice) {
  ASSERT_EQ(train({"--out", "hold", "--epochs", "4", "--on-trace-end", "hold"}).code, 0);
  EXPECT_EQ(summary("hold")["steps"], 30 + 10) << "10 steps of 32";
  ASSERT_EQ(train({"--out", "cycle", "--epochs", "4", "--on-trace-end", "cycle"}).code, 0);
  EXPECT_EQ(summary("cycle")["steps"], 40);
  ASSERT_EQ(train({"--out", "stop", "--epochs", "4", "--on-trace-end", "stop"}).code, 0);
  EXPECT_EQ(summary("stop")["steps"], 30);
  EXPECT_EQ(summary("stop")["epochs"], 3);
  EXPECT_EQ(summary("stop")["stopped"], "the trace ended after 30 steps");
}

TEST_F(TrainCommand, SaysWhyItEndedAndHowMuchOfAnEpochThatWas) {
  // 8 steps of 40 samples in an epoch; there are 5, and 12.
  write_trace({40, 40, 40, 40, 40});
  const ProgramResult part = train({"--out=part", "--on-trace-end=stop"});
  ASSERT_EQ(part.code, 0) << part.err;
  EXPECT_THAT(part.out,
              AllOf(HasSubstr("\nstopped: the trace ended after 5 steps\n"),
                    HasSubstr("\ntrained 5 of 8 steps of epoch 1: 5 steps, 200 samples")));
  EXPECT_EQ(summary("part")["stopped"], "the trace ended after 5 steps");
  EXPECT_EQ(summary("part")["epochs"], 0);
  EXPECT_EQ(summary("part")["part_of_epoch"]["of_steps"], 8);
}

TEST_F(TrainCommand, AModelThatDoesNotFitTheImagesIsAnError) {
  const ProgramResult result = train({"--out", "run", "--model", "mnist-cnn"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("1 x 28 x 28"), HasSubstr("mlp, softmax")));
  EXPECT_FALSE(fs::exists(file("run")));
}

TEST_F(TrainCommand, QuietPrintsNothing) {
  const ProgramResult result = train({"--out", "run", "--quiet"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out + result.err, "");
}

TEST_F(TrainCommand, PythonReadsTheWeights) {
  if (test::run_program("/usr/bin/python3", {"-c", "import torch"}).code != 0) {
    GTEST_SKIP() << "python3-torch is not installed";
  }
  ASSERT_EQ(train({"--out", "run", "--engine", "libtorch"}).code, 0);
  // The evaluation again, in Python, from the files alone.
  const ProgramResult python = test::run_program("/usr/bin/python3", {"-c", R"(
import hashlib, torch
weights = torch.load("run/weights.pt")
model = torch.nn.Linear(144, 10)
model.load_state_dict({name.split(".", 1)[1]: tensor for name, tensor in weights.items()})
print(hashlib.sha256(b"".join(t.numpy().tobytes() for t in weights.values())).hexdigest())
)"},
                                                 file(""));
  EXPECT_EQ(python.code, 0) << python.err;
  EXPECT_EQ(python.out, hash("run") + "\n");
}

TEST_F(TrainCommand, TrainsTheDefaultNetworkOnTheBuiltInDigits) {
  const ProgramResult result = test::rubato({"train", "--epochs", "1", "--out", "run"}, file(""));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("mnist-cnn on digits: 12000 training and 2000 test images"));
  EXPECT_GT(summary("run")["final_test_accuracy"], 0.7) << "of one epoch of five";
  EXPECT_FALSE(fs::exists(file("run/trace.csv"))) << "a built-in trace needs no file";
}

}  // namespace
}  // namespace rubato
