#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <rubato/steps/random.hpp>

#include "app/run_program.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using nlohmann::json;
using test::ProgramResult;

json plan_json(const test::Words& arguments) {
  const ProgramResult result = test::rubato("plan --json" + arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out, nullptr, false);
}

TEST(PlanCommand, CarriesWhatFillsNoStep) {
  const json plan = plan_json(
      "--trace=8 --dataset-size=10 --minibatch=4 --cores=1 --remainder=carry --epochs=2 --indices");
  EXPECT_EQ(plan.at("epochs").at(1).at("cores").at(0).at("assignments").dump(), "[[1,2]]");
  EXPECT_EQ(plan.at("epochs").at(1).at("trace_range").dump(), "[2,3]");
  EXPECT_EQ(plan.at("epochs").at(0).at("cores").at(0).at("indices").size(), 4U);
  // A step of two epochs and a half.
  const ProgramResult table =
      test::rubato("plan --trace=28 --dataset-size=10 --minibatch=4 --remainder=carry --epochs=3");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, ContainsRegex("all +1-2 +2 +28 +28 +28 +30 +0 "));
}

TEST(PlanCommand, PrintsThisJson) {
  EXPECT_EQ(test::rubato("plan --trace=96 --dataset-size=192 --cores=2 --json").out,
            "{\"epochs\": [\n"
            "{\"epoch\":0,\"trace_range\":[0,2],\"batch_sizes\":[96,96],\"cores\":["
            "{\"core\":0,\"assignments\":[[0,1],[3,4]]},{\"core\":1,\"assignments\":[[2],[5]]}]}\n"
            "]}\n");
  // Strided, and with the samples: torch.manual_seed(42); torch.randperm(10).
  EXPECT_EQ(test::rubato("plan --trace=8 --dataset-size=10 --minibatch=4 --cores=3 "
                         "--assignment=strided --json --indices")
                .out,
            "{\"epochs\": [\n"
            "{\"epoch\":0,\"trace_range\":[0,1],\"batch_sizes\":[8],\"cores\":["
            "{\"core\":0,\"assignments\":[[0]],\"indices\":[[2,6,1,8]]},"
            "{\"core\":1,\"assignments\":[[1]],\"indices\":[[4,5,0,9]]},"
            "{\"core\":2,\"assignments\":[[]],\"indices\":[]}]}\n"
            "]}\n");
}

TEST(PlanCommand, ListsTheMostCoresOfAnEpoch) {
  const test::TempFolder folder;
  const std::string trace = folder.write("t.csv", "step,batchsize,cores\n0,96,1\n1,96,3\n2,96,\n");
  const json cores = plan_json("--trace " + trace + " --dataset-size=288 --cores=2")
                         .at("/epochs/0/cores"_json_pointer);
  ASSERT_EQ(cores.size(), 3U);
  EXPECT_EQ(cores[0].at("assignments").dump(), "[[0,1,2],[3],[6,7]]");
  EXPECT_EQ(cores[1].at("assignments").dump(), "[[],[4],[8]]");
  EXPECT_EQ(cores[2].at("assignments").dump(), "[[],[5],[]]");
}

// The numbers of the epochs that are printed.
std::vector<int> epochs_of(const json& plan) {
  std::vector<int> epochs;
  for (const auto& epoch : plan.at("epochs")) epochs.push_back(epoch.at("epoch"));
  return epochs;
}

TEST(PlanCommand, PrintsTheEpochsAskedFor) {
  const test::TempFolder folder;
  // Two epochs of 64 samples, and a half one.
  const std::string trace = folder.write("t.csv", "step,batchsize\n0,64\n1,32\n2,32\n3,32\n");
  const auto epochs = [&](const test::Words& arguments) {
    return epochs_of(plan_json("--dataset-size=64" + arguments));
  };
  using Epochs = std::vector<int>;
  EXPECT_EQ(epochs("--trace " + trace), (Epochs{0, 1}));
  EXPECT_EQ(epochs("--trace " + trace + " --on-trace-end=stop"), (Epochs{0, 1, 2}));
  EXPECT_EQ(epochs("--trace " + trace + " --on-trace-end=hold"), (Epochs{0}));
  EXPECT_EQ(epochs("--trace " + trace + " --on-trace-end=cycle --epochs=4"), (Epochs{0, 1, 2, 3}));
  EXPECT_EQ(epochs("--trace " + trace + " --epoch=2"), (Epochs{1}));
  EXPECT_EQ(epochs("--trace " + trace + " --epochs=1"), (Epochs{0}));
  EXPECT_EQ(epochs("--trace " + trace + " --epochs=9 --on-trace-end=stop"), (Epochs{0, 1, 2}));
  EXPECT_EQ(epochs("--trace=32"), (Epochs{0}));
  EXPECT_EQ(epochs("--trace=32 --epoch=101"), (Epochs{100}));
}

TEST(PlanCommand, PrintsThisTable) {
  const test::TempFolder folder;
  folder.write("t.csv", "step,batchsize,cores\n0,512,\n1,1024,4\n2,32,\n3,64,\n4,1536,\n5,96,\n");
  EXPECT_EQ(test::rubato("plan --trace=t.csv --dataset-size=1600", folder.path()).out,
            "trace  t.csv\n"
            "data   1,600 samples in minibatches of 32, on 4 to 8 cores, contiguous\n"
            "\n"
            "epoch  range  steps  min batch  median    max  samples  dropped  utilisation\n"
            "    1    1-3      3         32     512  1,024    1,568       32       87.5 %\n"
            "    2    4-5      2         64      64  1,536    1,600        0       89.3 %\n"
            "  all    1-5      5         32     512  1,536    3,168       32       88.4 %\n"
            "\n"
            "The trace lasts 2 epochs and 1 further step (96 samples) of the 3rd; 6 steps.\n");
}

TEST(PlanCommand, MarksAnEpochThatIsNotFull) {
  const test::TempFolder folder;
  folder.write("t.csv", "step,batchsize\n0,32\n");
  EXPECT_EQ(test::rubato(
                {"plan", "--trace=t.csv", "--dataset-size=64", "--cores=1", "--on-trace-end=stop"},
                folder.path())
                .out,
            "trace  t.csv\n"
            "data   64 samples in minibatches of 32, on 1 core, contiguous\n"
            "\n"
            "epoch  range  steps  min batch  median  max  samples  dropped  utilisation\n"
            "   *1    1-1      1         32      32   32       32       32      100.0 %\n"
            "* the trace stops before this epoch is full\n"
            "\n"
            "The trace lasts 0 epochs and 1 further step (32 samples) of the 1st; 1 step.\n");
}

TEST(PlanCommand, SaysHowLongTheTraceLasts) {
  const test::TempFolder folder;
  folder.write("t.csv", "step,batchsize\n0,64\n1,64\n");
  const auto last_line = [&](const test::Words& arguments) {
    const std::string out = test::rubato("plan --dataset-size=64" + arguments, folder.path()).out;
    return out.substr(out.rfind('\n', out.size() - 2) + 1);
  };
  EXPECT_EQ(last_line("--trace=t.csv"), "The trace lasts 2 epochs; 2 steps.\n");
  EXPECT_EQ(last_line("--trace=t.csv --on-trace-end=hold"),
            "The trace lasts 2 epochs; 2 steps; then it holds its last step.\n");
  EXPECT_EQ(last_line("--trace=t.csv --on-trace-end=cycle"),
            "The trace lasts 2 epochs; 2 steps; then it begins again.\n");
  EXPECT_EQ(last_line("--trace=32"), "The trace never ends.\n");
}

TEST(PlanCommand, PlansTheOriginalsTrace) {
  if (!std::filesystem::exists(RUBATO_SHARED_DIR "/data/traces/test_trace.csv")) {
    GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/data/traces/test_trace.csv";
  }
  EXPECT_THAT(
      test::rubato({"plan", "--trace=" RUBATO_SHARED_DIR "/data/traces/test_trace.csv",
                    "--dataset-size=60000"})
          .out,
      HasSubstr("The trace lasts 12 epochs and 48 further steps (54,784 samples) of the 13th; "
                "810 steps.\n"));
}

// A line of its own, and not among the JSON.
TEST(PlanCommand, SaysThatCoresDoNothingForATraceThatAlwaysSays) {
  const test::TempFolder folder;
  folder.write("always.csv", "step,batchsize,cores\n0,64,2\n1,32,1\n");
  folder.write("sometimes.csv", "step,batchsize,cores\n0,64,2\n1,32,\n");
  const auto errors = [&](const std::string& arguments) {
    const ProgramResult result =
        test::rubato("plan --dataset-size=96 --json --trace " + arguments, folder.path());
    EXPECT_EQ(result.code, 0);
    EXPECT_TRUE(json::accept(result.out));
    return result.err;
  };
  EXPECT_EQ(errors("always.csv --cores=4"),
            "rubato plan: --cores 4 does nothing: always.csv says how many there are in every "
            "step\n");
  EXPECT_EQ(errors("always.csv"), "");
  EXPECT_EQ(errors("sometimes.csv --cores=4"), "");
}

TEST(PlanCommand, RejectsWhatIsWrong) {
  const test::TempFolder folder;
  folder.write("short.csv", "step,batchsize\n0,64\n1,32\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--trace=short.csv --dataset-size=32", "short.csv:2: batch size 64 is larger than an epoch"},
      {"--trace=.", "cannot read the trace .: it is a folder; accepted: a CSV file"},
      {"--trace=short.csv --dataset-size=64 --epochs=2",
       "short.csv:3: the trace ends after 1 epoch"},
      {"--trace=short.csv --dataset-size=64 --epoch=2",
       "--epoch: the trace short.csv ends before epoch 2; accepted: 1\n"},
      {"--trace=short.csv --dataset-size=64 --epoch=0", "--epoch: '0' is out of range"},
      {"--trace=short.csv --epoch=1",
       "--epoch: the trace short.csv ends before epoch 1; accepted: a longer trace"},
      {"--dataset-size=31", "the data set holds 31 samples, less than one minibatch of 32"},
      {"--dataset-size=0", "--dataset-size: '0' is out of range"},
      {"--seed=3 --json", "--seed: no samples are printed; accepted: with --indices"},
      {"--epoch=1 --epochs=1", "--epoch and --epochs exclude each other; accepted: one of them"},
      {"--indices", "--indices: the table has no room for samples; accepted: together with --json"},
      {"--dataset 10", "unknown option '--dataset'; did you mean '--dataset-size'?"}};
  for (const auto& [arguments, message] : cases) {
    const ProgramResult result = test::rubato("plan " + arguments, folder.path());
    EXPECT_EQ(result.code, 2) << message;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("rubato plan: " + message));
  }
}

}  // namespace
}  // namespace rubato
