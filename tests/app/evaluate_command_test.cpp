// rubato eval and rubato predict.

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "support/idx_images.hpp"
#include "support/json_schema.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

constexpr int kTestImages = 300;

class EvaluateCommand : public test::CommandTest {
 protected:
  void SetUp() override {
    test::write_idx_images(folder_, "data", "train", 640, 28);
    test::write_idx_images(folder_, "data", "t10k", kTestImages, 28);
  }
  // A run that has ended; returns its summary.
  nlohmann::json trained(const std::string& run, const std::string& more) const {
    succeeds("train --data=mnist:data --quiet --trace=96 --epochs=2 --top-k=3 --out=" + run + " " +
             more);
    return summary(run);
  }
  // What eval says of it, or of what the arguments name.
  [[nodiscard]] nlohmann::json evaluated(const std::string& arguments) const {
    return nlohmann::json::parse(succeeds("eval --json " + arguments));
  }
  // A column of a table of CSV, by its place.
  static std::vector<std::string> column(const std::string& csv, int place) {
    std::vector<std::string> cells;
    std::istringstream lines(csv);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream row(line);
      std::string cell;
      for (int i = 0; i <= place; ++i) std::getline(row, cell, ',');
      cells.push_back(cell);
    }
    return cells;
  }
};

TEST_F(EvaluateCommand, SaysOfARunWhatItsSummaryDoes) {
  // By Eigen, with initial values of another kind, and from weights.
  for (const std::string options :
       {"--model=softmax", "--model=mlp:hidden=16 --init=msra --label-smoothing=0.1",
        "--model=resnet20:width=2 --threads=2"}) {
    SCOPED_TRACE(options);
    const nlohmann::json summary = trained("run", options);
    const nlohmann::json found = evaluated("run --top-k=3");
    EXPECT_NEAR(found["loss"], summary["final_test_loss"], 1e-6);
    EXPECT_EQ(found["accuracy"], summary["final_test_accuracy"]);
    EXPECT_EQ(found["top_k_accuracy"], summary["final_test_top_k_accuracy"]);
    EXPECT_EQ(found["samples"], kTestImages);
    // The folder may lie elsewhere, and other options come behind it.
    std::filesystem::rename(file("run"), file("moved"));
    EXPECT_EQ(evaluated("moved --threads=1")["loss"], found["loss"]);
    EXPECT_NE(evaluated("moved --loss=mse")["loss"], found["loss"]);
    std::filesystem::remove_all(folder_.path() / "moved");
  }
}

TEST_F(EvaluateCommand, PredictsWhatEvalHasEvaluated) {
  const nlohmann::json summary = trained("run", "--model=softmax --engine=libtorch");
  const std::string printed = succeeds("predict run --what=classes");
  const auto classes = column(printed, 1);
  ASSERT_EQ(classes.size(), kTestImages + 1U);
  EXPECT_EQ(classes.front(), "class");
  const std::string labels = content("data/t10k-labels-idx1-ubyte");
  constexpr std::size_t kHeader = 8;
  int right = 0;
  for (std::size_t i = 0; i < kTestImages; ++i) {
    EXPECT_EQ(column(printed, 0)[i + 1], fmt::to_string(i));
    if (std::stoi(classes[i + 1]) == labels[kHeader + i]) ++right;
  }
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / kTestImages, summary["final_test_accuracy"]);

  succeeds("predict run --out=outputs.csv");
  const std::string outputs = content("outputs.csv");
  EXPECT_THAT(outputs, StartsWith("sample,output0,output1,"));
  EXPECT_EQ(std::count(outputs.begin(), outputs.end(), '\n'), kTestImages + 1);
  double loss = 0;
  std::vector<std::vector<std::string>> columns;
  columns.reserve(10);
  for (int i = 0; i < 10; ++i) columns.push_back(column(outputs, i + 1));
  for (std::size_t i = 0; i < kTestImages; ++i) {
    loss -= std::stod(columns[static_cast<std::size_t>(labels[kHeader + i])][i + 1]) / kTestImages;
  }
  EXPECT_NEAR(loss, summary["final_test_loss"], 1e-6);

  succeeds("predict run --out=outputs.safetensors");
  EXPECT_THAT(content("outputs.safetensors"),
              HasSubstr(fmt::format("\"shape\":[{},10]", kTestImages)));
  succeeds("predict run --out=outputs.pt");
  if (test::run_program("/usr/bin/python3", {"-c", "import torch"}).code != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no module torch here";
  }
  folder_.write("compare.py", R"(
import numpy, torch
table = numpy.loadtxt("outputs.csv", delimiter=",", skiprows=1, dtype=numpy.float32)
assert (torch.load("outputs.pt")["output"].numpy() == table[:, 1:]).all()
)");
  const auto python = test::run_program("/usr/bin/python3", {"compare.py"}, folder_.path());
  EXPECT_EQ(python.code, 0) << python.err;
}

TEST_F(EvaluateCommand, ShowsATable) {
  trained("run", "--model=softmax");
  EXPECT_THAT(succeeds("eval run"),
              MatchesRegex("test samples +300\ntest loss +[0-9.]+\naccuracy +[0-9.]+ %\n"
                           "top-3 accuracy +[0-9.]+ %\n"));
}

// All that a run and its evaluation write.
TEST_F(EvaluateCommand, WritesWhatItsJsonSchemaSays) {
  const test::JsonSchema schema(nlohmann::json::parse(printed("list records --json")));
  std::set<std::string> kinds;
  for (const std::string options :
       {"--model=softmax --log-noise --log-minibatches --monitor=* --faults=rate=0.5",
        "--model=softmax --clock=virtual --cluster=substep=0.1 --price=1"}) {
    const std::string run = fmt::format("run{}", kinds.size());
    EXPECT_EQ(schema.violation(trained(run, options)), "");
    EXPECT_EQ(schema.violation(evaluated(run + " --top-k=3")), "");
    for (const nlohmann::json& record : records(run)) {
      kinds.insert(record["kind"].get<std::string>());
      EXPECT_EQ(schema.violation(record), "") << record;
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"epoch", "fault", "minibatch", "monitor", "step"}));
}

TEST_F(EvaluateCommand, SaysWhatIsWrong) {
  EXPECT_EQ(refusal("eval --model=mlp"),
            "rubato eval: --weights: mlp is untrained without them; accepted: a state_dict, or "
            "the folder of a run\n");
  EXPECT_EQ(refusal("predict --model=quadratic"),
            "rubato predict: --model: quadratic has no data to be evaluated on; accepted: a "
            "classifier, such as softmax\n");
  EXPECT_THAT(refusal("eval nowhere"), HasSubstr("nowhere"));
  EXPECT_THAT(refusal("eval --epochs=3"), HasSubstr("--epochs"));
  EXPECT_THAT(refusal("predict --out=classes.txt"),
              HasSubstr("--out: 'classes.txt' has an unknown type; accepted: a file that ends in "
                        ".csv, .pt, .safetensors"));
  EXPECT_THAT(refusal("predict --what=class"),
              HasSubstr("did you mean 'classes'? accepted: outputs, classes"));
  trained("run", "--model=softmax");
  EXPECT_THAT(refusal("eval run --model=mlp"), HasSubstr("it lacks linear1.weight"));
  std::filesystem::remove(file("run/weights.safetensors"));
  EXPECT_THAT(refusal("eval run"), HasSubstr("accepted: that of a run that has ended"));
}

TEST_F(EvaluateCommand, TakesTheRunBeforeAndAfterOptions) {
  trained("run", "--model=softmax");
  std::filesystem::rename(file("run"), file("-run"));
  const std::string json = printed("eval ./-run --json");
  EXPECT_THAT(json, HasSubstr("\"accuracy\""));
  EXPECT_EQ(printed("eval --json ./-run"), json);
  EXPECT_EQ(printed("eval --json -- -run"), json);
  EXPECT_EQ(printed("eval --run=-run --json"), json);
  const std::string classes = printed("predict ./-run --what classes");
  EXPECT_EQ(printed("predict --what classes ./-run"), classes);
  EXPECT_EQ(refusal("eval ./-run b"),
            "rubato eval: unexpected argument 'b'; see rubato eval --help\n");
  EXPECT_EQ(refusal("train -- x"),
            "rubato train: unexpected argument 'x'; see rubato train --help\n");
  EXPECT_EQ(refusal("train -- --epochs=1"),
            "rubato train: unexpected argument '--epochs=1'; see rubato train --help\n");
}

}  // namespace
}  // namespace rubato
