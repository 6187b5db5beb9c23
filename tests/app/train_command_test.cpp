#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/small_training.hpp"
#include "base/machine/instruction_set.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::ProgramResult;

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
  [[nodiscard]] ProgramResult train(const test::Words& more) const {
    return rubato(
        "train --data mnist:data --model softmax --trace trace.csv --minibatch 8 --epochs 3 "
        "--threads 2 --lr 0.05" +
        more);
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
  const ProgramResult result = train("--out run --monitor *.weight --monitor-every 4");
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
  for (const auto& [field, value] : std::vector<std::pair<const char*, int>>{
           {"epochs", 3}, {"steps", 30}, {"samples", 960}, {"threads", 2}, {"seed", 42}}) {
    EXPECT_EQ(run[field], value) << field;
  }
  EXPECT_TRUE(run["stopped"].is_null());
  std::int64_t step = 0;
  for (const json& record : records("run", "step")) {
    EXPECT_EQ(record["step"], step++);
    EXPECT_DOUBLE_EQ(record["lr"], 0.05 * static_cast<double>(record["batch"]) / 128);
    // Minibatches of 8 on 8 cores; idle ones are left out.
    EXPECT_EQ(record["substeps"].size(), std::min(record["batch"].get<std::size_t>() / 8, 8UL));
  }
  EXPECT_EQ(step, 30);
  EXPECT_EQ(records("run")[16]["kind"], "epoch") << "after 10 steps, and 6 lines about tensors";
  EXPECT_EQ(records("run", "epoch").size(), 3U);
  const std::vector<json> monitored = records("run", "monitor");
  ASSERT_EQ(monitored.size(), 16U) << "of steps 0, 4, 8, ...";
  EXPECT_EQ(monitored[0]["tensor"], "linear.weight");
  EXPECT_EQ(monitored[0]["of"], "parameter");
  EXPECT_EQ(monitored[1]["of"], "gradient");
  EXPECT_EQ(content("run/trace.csv"), content("trace.csv"));
}

TEST_F(TrainCommand, EachTechniqueChangesTheResult) {
  std::set<std::string> hashes;
  for (const std::string technique : {"",
                                      "--rule=adascale",
                                      "--rule=lbsgd:warmup=power2,epochs=1",
                                      "--rule=lbsgd:warmup=lars",
                                      "--rule=linear:ramp=3",
                                      "--schedule=cosine:total=30 --schedule-unit=steps",
                                      "--optimizer=lars",
                                      "--optimizer=adam",
                                      "--optimizer=adamw:beta1=0.5",
                                      "--optimizer=rmsprop",
                                      "--optimizer=adagrad",
                                      "--optimizer=muon",
                                      "--optimizer=muon:nesterov=false",
                                      "--momentum=0.9",
                                      "--momentum=0.9 --nesterov",
                                      "--weight-decay=0.1",
                                      "--weight-decay=0.1 --no-decay=vectors",
                                      "--lr-for=*.bias=2",
                                      "--clip-norm=0.1",
                                      "--lookahead=3",
                                      "--lookahead=3 --lookahead-alpha=0.8",
                                      "--lookahead=3 --lookahead-start=after",
                                      "--init=xavier",
                                      "--precision=bf16",
                                      "--label-smoothing=0.1"}) {
    const std::string name = fmt::format("run{}", hashes.size());
    const ProgramResult result = train(technique + " --epochs 1 --out " + name);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(hashes.insert(hash(name)).second) << technique;
  }
}

TEST_F(TrainCommand, OperatorsAreTheUsersChoiceAndBindTheRun) {
  if (cpu_instruction_set() < InstructionSet::avx2) GTEST_SKIP() << "needs AVX2 and FMA";
  write_trace({64, 64});
  const auto of = [&](const std::string& operators) {
    succeeds("train --model=mnist-cnn --trace=trace.csv --epochs=1 --on-trace-end=stop --out=" +
             operators + " --operators=" + operators);
    return hash(operators);
  };
  const std::set<std::string> hashes{of("all"), of("none"), of("convolution"), of("batch-norm")};
  EXPECT_EQ(hashes.size(), 4);
  EXPECT_EQ(of("max-pool"), hash("none"));
  EXPECT_EQ(of("batch-norm,convolution"), hash("all"));
  EXPECT_EQ(of("attention"), hash("none")) << "the network has none";
  EXPECT_THAT(refusal("train --resume=all --operators=none"),
              HasSubstr("--operators was all, is none"));
}

TEST_F(TrainCommand, StopsEarlyWhenNothingImproves) {
  // No rounding comes to the difference that is asked for: the weights stay where they are, but the
  // minibatches are others in every epoch, and are summed in another order.
  const ProgramResult result =
      train("--out run --lr 1e-30 --patience 1 --watch train-loss --min-delta 0.01");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(summary("run")["stopped"], "train-loss no longer improves");
  EXPECT_EQ(summary("run")["epochs"], 2);
}

TEST_F(TrainCommand, AMissedTargetIsExitCode21) {
  EXPECT_EQ(train("--out met --target-accuracy 50").code, 0);
  const ProgramResult missed = train("--out missed --target-accuracy 100 --lr 1e-6");
  EXPECT_EQ(missed.code, 21);
  EXPECT_THAT(missed.err,
              AllOf(HasSubstr("test accuracy "), HasSubstr("below --target-accuracy 100 %")));
  EXPECT_TRUE(fs::exists(file("missed/weights.safetensors")));
}

TEST_F(TrainCommand, PythonReadsTheWeights) {
  if (test::run_program("/usr/bin/python3", {"-c", "import torch"}).code != 0) {
    GTEST_SKIP() << "python3-torch is not installed";
  }
  ASSERT_EQ(train("--out run --engine libtorch").code, 0);
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

}  // namespace
}  // namespace rubato
