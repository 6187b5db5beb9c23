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

#include "app/run_program.hpp"
#include "support/idx_images.hpp"
#include "support/json_schema.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kTestImages = 300;

class EvaluateCommand : public testing::Test {
 protected:
  void SetUp() override {
    test::write_idx_images(folder_, "data", "train", 640, 28);
    test::write_idx_images(folder_, "data", "t10k", kTestImages, 28);
  }
  [[nodiscard]] test::ProgramResult rubato(const std::vector<std::string>& arguments) const {
    return test::rubato(arguments, folder_.path());
  }
  // A run that has ended; returns its summary.
  [[nodiscard]] nlohmann::json trained(const std::string& run,
                                       std::vector<std::string> more = {}) const {
    const std::vector<std::string> all{"train",        "--data=mnist:data", "--quiet",
                                       "--out=" + run, "--trace=96",        "--epochs=2",
                                       "--top-k=3"};
    more.insert(more.begin(), all.begin(), all.end());
    const auto result = rubato(more);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(test::read_file(folder_.path() / run / "summary.json"));
  }
  // What eval says of it, or of what the arguments name.
  [[nodiscard]] nlohmann::json evaluated(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "eval");
    arguments.emplace_back("--json");
    const auto result = rubato(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return nlohmann::json::parse(result.out);
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
  [[nodiscard]] std::string error_of(const std::vector<std::string>& arguments) const {
    const auto result = rubato(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  }

  test::TempFolder folder_;
};

TEST_F(EvaluateCommand, SaysOfARunWhatItsSummaryDoes) {
  // By Eigen, with initial values of another kind, and from weights.
  for (const auto& options : std::vector<std::vector<std::string>>{
           {"--model=softmax"},
           {"--model=mlp:hidden=16", "--init=msra", "--label-smoothing=0.1"},
           {"--model=resnet20:width=2", "--threads=2"}}) {
    SCOPED_TRACE(options.front());
    const std::string run = fmt::format("run{}", options.size() + options.front().size());
    const nlohmann::json summary = trained(run, options);
    const nlohmann::json found = evaluated({run, "--top-k=3"});
    EXPECT_NEAR(found["loss"], summary["final_test_loss"], 1e-6);
    EXPECT_EQ(found["accuracy"], summary["final_test_accuracy"]);
    EXPECT_EQ(found["top_k_accuracy"], summary["final_test_top_k_accuracy"]);
    EXPECT_EQ(found["samples"], kTestImages);
    // The folder may lie elsewhere, and other options come behind it.
    std::filesystem::rename(folder_.path() / run, folder_.path() / "moved");
    EXPECT_EQ(evaluated({"moved", "--threads=1"})["loss"], found["loss"]);
    EXPECT_NE(evaluated({"moved", "--loss=mse"})["loss"], found["loss"]);
    std::filesystem::remove_all(folder_.path() / "moved");
  }
}

TEST_F(EvaluateCommand, PredictsWhatEvalHasEvaluated) {
  const nlohmann::json summary = trained("run", {"--model=softmax", "--engine=libtorch"});
  const auto printed = rubato({"predict", "run", "--what=classes"});
  ASSERT_EQ(printed.code, 0) << printed.err;
  const auto classes = column(printed.out, 1);
  ASSERT_EQ(classes.size(), kTestImages + 1U);
  EXPECT_EQ(classes.front(), "class");
  const std::string labels = test::read_file(folder_.path() / "data" / "t10k-labels-idx1-ubyte");
  constexpr std::size_t kHeader = 8;
  int right = 0;
  for (std::size_t i = 0; i < kTestImages; ++i) {
    EXPECT_EQ(column(printed.out, 0)[i + 1], fmt::to_string(i));
    if (std::stoi(classes[i + 1]) == labels[kHeader + i]) ++right;
  }
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / kTestImages, summary["final_test_accuracy"]);

  EXPECT_EQ(rubato({"predict", "run", "--out=outputs.csv"}).code, 0);
  const std::string outputs = test::read_file(folder_.path() / "outputs.csv");
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

  EXPECT_EQ(rubato({"predict", "run", "--out=outputs.safetensors"}).code, 0);
  EXPECT_THAT(test::read_file(folder_.path() / "outputs.safetensors"),
              HasSubstr(fmt::format("\"shape\":[{},10]", kTestImages)));
  EXPECT_EQ(rubato({"predict", "run", "--out=outputs.pt"}).code, 0);
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
  static_cast<void>(trained("run", {"--model=softmax"}));
  const auto result = rubato({"eval", "run"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              testing::MatchesRegex("test samples +300\ntest loss +[0-9.]+\naccuracy +[0-9.]+ %\n"
                                    "top-3 accuracy +[0-9.]+ %\n"));
}

// All that a run and its evaluation write.
TEST_F(EvaluateCommand, WritesWhatItsJsonSchemaSays) {
  const test::JsonSchema schema(nlohmann::json::parse(rubato({"list", "records", "--json"}).out));
  std::set<std::string> kinds;
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--model=softmax", "--log-noise", "--log-minibatches",
                                 "--monitor=*", "--faults=rate=0.5"},
        {"--model=softmax", "--clock=virtual", "--cluster=substep=0.1", "--price=1"}}) {
    const std::string run = fmt::format("run{}", options.size());
    EXPECT_EQ(schema.violation(trained(run, options)), "");
    EXPECT_EQ(schema.violation(evaluated({run, "--top-k=3"})), "");
    std::istringstream lines(test::read_file(folder_.path() / run / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto record = nlohmann::json::parse(line);
      kinds.insert(record["kind"].get<std::string>());
      EXPECT_EQ(schema.violation(record), "") << line;
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"epoch", "fault", "minibatch", "monitor", "step"}));
}

TEST_F(EvaluateCommand, SaysWhatIsWrong) {
  EXPECT_EQ(error_of({"eval", "--model=mlp"}),
            "rubato eval: --weights: mlp is untrained without them; accepted: a state_dict, or "
            "the folder of a run\n");
  EXPECT_EQ(error_of({"predict", "--model=quadratic"}),
            "rubato predict: --model: quadratic has no data to be evaluated on; accepted: a "
            "classifier, such as softmax\n");
  EXPECT_THAT(error_of({"eval", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(error_of({"eval", "--epochs=3"}), HasSubstr("--epochs"));
  EXPECT_THAT(error_of({"predict", "--out=classes.txt"}),
              HasSubstr("--out: 'classes.txt' has an unknown type; accepted: a file that ends in "
                        ".csv, .pt, .safetensors"));
  EXPECT_THAT(error_of({"predict", "--what=class"}),
              HasSubstr("did you mean 'classes'? accepted: outputs, classes"));
  static_cast<void>(trained("run", {"--model=softmax"}));
  EXPECT_THAT(error_of({"eval", "run", "--model=mlp"}), HasSubstr("it lacks linear1.weight"));
  std::filesystem::remove(folder_.path() / "run" / "weights.safetensors");
  EXPECT_THAT(error_of({"eval", "run"}), HasSubstr("accepted: that of a run that has ended"));
}

TEST_F(EvaluateCommand, TakesTheRunBeforeAndAfterOptions) {
  static_cast<void>(trained("run", {"--model=softmax"}));
  std::filesystem::rename(folder_.path() / "run", folder_.path() / "-run");
  const auto answer = [&](const std::vector<std::string>& arguments) {
    const test::ProgramResult result = test::rubato(arguments, folder_.path());
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  const std::string json = answer({"eval", "./-run", "--json"});
  EXPECT_THAT(json, HasSubstr("\"accuracy\""));
  EXPECT_EQ(answer({"eval", "--json", "./-run"}), json);
  EXPECT_EQ(answer({"eval", "--json", "--", "-run"}), json);
  EXPECT_EQ(answer({"eval", "--run=-run", "--json"}), json);
  const std::string classes = answer({"predict", "./-run", "--what", "classes"});
  EXPECT_EQ(answer({"predict", "--what", "classes", "./-run"}), classes);
  EXPECT_EQ(error_of({"eval", "./-run", "b"}),
            "rubato eval: unexpected argument 'b'; see rubato eval --help\n");
  EXPECT_EQ(error_of({"train", "--", "x"}),
            "rubato train: unexpected argument 'x'; see rubato train --help\n");
  EXPECT_EQ(error_of({"train", "--", "--epochs=1"}),
            "rubato train: unexpected argument '--epochs=1'; see rubato train --help\n");
}

// A hostile file of weights costs no more memory than there is.
TEST_F(EvaluateCommand, ReadsHostileWeightsInLittleMemory) {
  static_cast<void>(trained("run", {"--model=softmax", "--engine=libtorch"}));
  std::string weights = test::read_file(folder_.path() / "run" / "weights.pt");
  for (const std::size_t place : {weights.size() / 3, weights.size() / 2, weights.size() - 40}) {
    std::string changed = weights;
    changed.replace(place, 16, std::string(16, '\xff'));
    folder_.write("hostile.pt", changed);
    const auto result = test::shell(
        "ulimit -v 4000000 && exec \"$0\" eval --model softmax --data mnist:data --threads 1 "
        "--weights hostile.pt",
        folder_.path());
    EXPECT_TRUE(result.code == 0 || result.code == 2) << result.code << result.err;
  }
}

}  // namespace
}  // namespace rubato
