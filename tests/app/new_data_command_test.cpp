// rubato eval and rubato predict on other data than those of the run, and weights that are not its.

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

class NewDataCommand : public test::CommandTest {
 protected:
  // The label is what the sign of a says.
  NewDataCommand() {
    std::string table = "a,b,colour,y\n";
    for (int i = 0; i < 200; ++i) {
      const int a = i * 37 % 101 - 50;
      table += fmt::format("{},{},{},{}\n", 10 * a + 5, i % 7 == 0 ? "" : "3",
                           i % 2 == 0 ? "red" : "blue", a < 0 ? "\"below, zero\"" : "above");
    }
    folder_.write("table.csv", table);
  }
  [[nodiscard]] nlohmann::json trained(const std::string& run, const std::string& more = "") const {
    EXPECT_THAT(
        succeeds("train --data=csv:table.csv,standardise=true,missing=mean --model=softmax "
                 "--validation=0.25 --trace=16 --minibatch=8 --lr=0.5 --epochs=4 --out=" +
                 run + " " + more),
        HasSubstr("150 training and 50 validation samples of 4 features (2 columns of numbers, 1 "
                  "of categories) in 2 classes"));
    return summary(run);
  }
};

TEST_F(NewDataCommand, PredictsNamesWithoutLabelsAndWithoutTheTrainingSet) {
  const nlohmann::json summary = trained("run");
  EXPECT_GT(summary["final_test_accuracy"], 0.9);
  const std::string of_run = printed("predict run --what=classes");
  EXPECT_THAT(of_run, HasSubstr(",\"below, zero\"\n"));
  EXPECT_THAT(of_run, HasSubstr(",above\n"));
  std::filesystem::remove(file("table.csv"));
  // One sample has no deviation, and what is missing no mean of its own.
  folder_.write("new.csv", "colour,b,a\nblue,,-400\n");
  EXPECT_EQ(printed("predict run --data=csv:new.csv --what=classes"),
            "sample,class\n0,\"below, zero\"\n");
  folder_.write("new.csv",
                "a,b,colour,y\n-400,3,red,\"below, zero\"\n400,3,red,above\n"
                "300,3,blue,\"below, zero\"\n,,blue,above\n");
  const auto eval = nlohmann::json::parse(printed("eval run --data=csv:new.csv --json"));
  EXPECT_EQ(eval["samples"], 4);
  EXPECT_GE(eval["accuracy"], 0.5);
  EXPECT_LE(eval["accuracy"], 0.75);
  folder_.write("bare.csv", "a,b,colour\n400,3,red\n");
  EXPECT_THAT(refusal("eval run --data=csv:bare.csv"), HasSubstr("the columns are"));
  EXPECT_THAT(refusal("predict run --data=digits"),
              HasSubstr("the model was trained on csv data; accepted: csv:FILE"));
  std::filesystem::remove(file("run/data.json"));
  EXPECT_THAT(refusal("predict run --data=csv:bare.csv"), HasSubstr("there is no run/data.json"));
}

TEST_F(NewDataCommand, CountsRowsWithACategoryThatTrainingDidNotHave) {
  static_cast<void>(trained("run"));
  folder_.write("new.csv", "a,b,colour\n-400,3,red\n400,3,green\n400,3,\n");
  EXPECT_THAT(refusal("predict run --data=csv:new.csv"),
              HasSubstr("new.csv:3: column 'colour' has 'green' in row 2; accepted: --unseen "
                        "missing, or a value that is in"));
  const auto result = rubato("predict run --data=csv:new.csv --what=classes --unseen=missing");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "sample,class\n0,\"below, zero\"\n1,above\n2,above\n");
  EXPECT_EQ(result.err,
            "rubato predict: new.csv: rows with a category that training did not have: 1 of 3\n");
  folder_.write("new.csv", "# by hand\na|b|colour\n-400|3|red\n");
  EXPECT_EQ(printed({"predict", "run", "--data=csv:new.csv,separator=|,comment=#", "--what=classes",
                     "--unseen=missing"}),
            "sample,class\n0,\"below, zero\"\n");
  EXPECT_THAT(refusal("predict run --unseen=missing"),
              HasSubstr("--unseen: only a table that was not trained on has such categories"));
}

TEST_F(NewDataCommand, ComparesTheWeightsWithTheSummary) {
  const std::string first = trained("first")["weights_sha256"];
  const std::string second = trained("second", "--seed=5")["weights_sha256"];
  ASSERT_NE(first, second);
  std::filesystem::copy_file(file("second/weights.safetensors"), file("first/weights.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  for (const char* const command : {"eval", "predict"}) {
    EXPECT_THAT(refusal({command, "first"}),
                HasSubstr(fmt::format("first/weights.safetensors: its weights have the SHA-256 {}, "
                                      "and summary.json says {}; accepted: ",
                                      second, first)));
  }
  EXPECT_EQ(rubato("eval first --weights=first/weights.safetensors").code, 0);
  folder_.write("second/summary.json", "{");
  EXPECT_THAT(refusal("eval second"), HasSubstr("second/summary.json: names no weights"));
}

}  // namespace
}  // namespace rubato
