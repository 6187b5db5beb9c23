// rubato eval and rubato predict on other data than those of the run, and weights that are not its.

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using testing::HasSubstr;

class NewDataCommand : public testing::Test {
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
  [[nodiscard]] test::ProgramResult rubato(const std::vector<std::string>& arguments) const {
    return test::rubato(arguments, folder_.path());
  }
  [[nodiscard]] nlohmann::json trained(const std::string& run,
                                       const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{
        "train",           "--data=csv:table.csv,standardise=true,missing=mean",
        "--model=softmax", "--validation=0.25",
        "--trace=16",      "--minibatch=8",
        "--lr=0.5",        "--epochs=4",
        "--out=" + run};
    all.insert(all.end(), more.begin(), more.end());
    const auto result = rubato(all);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out,
                HasSubstr("150 training and 50 validation samples of 4 features (2 columns of "
                          "numbers, 1 of categories) in 2 classes"));
    return nlohmann::json::parse(test::read_file(folder_.path() / run / "summary.json"));
  }
  [[nodiscard]] std::string error_of(const std::vector<std::string>& arguments) const {
    const auto result = rubato(arguments);
    EXPECT_EQ(result.code, 2);
    return result.err;
  }

  test::TempFolder folder_;
};

TEST_F(NewDataCommand, PredictsNamesWithoutLabelsAndWithoutTheTrainingSet) {
  const nlohmann::json summary = trained("run");
  EXPECT_GT(summary["final_test_accuracy"], 0.9);
  const auto of_run = rubato({"predict", "run", "--what=classes"});
  EXPECT_THAT(of_run.out, HasSubstr(",\"below, zero\"\n"));
  EXPECT_THAT(of_run.out, HasSubstr(",above\n"));
  std::filesystem::remove(folder_.path() / "table.csv");
  // One sample has no deviation, and what is missing no mean of its own.
  folder_.write("new.csv", "colour,b,a\nblue,,-400\n");
  const auto one = rubato({"predict", "run", "--data=csv:new.csv", "--what=classes"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, "sample,class\n0,\"below, zero\"\n");
  folder_.write("new.csv",
                "a,b,colour,y\n-400,3,red,\"below, zero\"\n400,3,red,above\n"
                "300,3,blue,\"below, zero\"\n,,blue,above\n");
  const auto eval = rubato({"eval", "run", "--data=csv:new.csv", "--json"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  EXPECT_EQ(nlohmann::json::parse(eval.out)["samples"], 4);
  EXPECT_GE(nlohmann::json::parse(eval.out)["accuracy"], 0.5);
  EXPECT_LE(nlohmann::json::parse(eval.out)["accuracy"], 0.75);
  folder_.write("bare.csv", "a,b,colour\n400,3,red\n");
  EXPECT_THAT(error_of({"eval", "run", "--data=csv:bare.csv"}), HasSubstr("the columns are"));
  EXPECT_THAT(error_of({"predict", "run", "--data=digits"}),
              HasSubstr("the model was trained on csv data; accepted: csv:FILE"));
  std::filesystem::remove(folder_.path() / "run" / "data.json");
  EXPECT_THAT(error_of({"predict", "run", "--data=csv:bare.csv"}),
              HasSubstr("there is no run/data.json"));
}

TEST_F(NewDataCommand, ComparesTheWeightsWithTheSummary) {
  const std::string first = trained("first")["weights_sha256"];
  const std::string second = trained("second", {"--seed=5"})["weights_sha256"];
  ASSERT_NE(first, second);
  std::filesystem::copy_file(folder_.path() / "second" / "weights.safetensors",
                             folder_.path() / "first" / "weights.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  for (const char* const command : {"eval", "predict"}) {
    EXPECT_THAT(error_of({command, "first"}),
                HasSubstr(fmt::format("first/weights.safetensors: its weights have the SHA-256 {}, "
                                      "and summary.json says {}; accepted: ",
                                      second, first)));
  }
  EXPECT_EQ(rubato({"eval", "first", "--weights=first/weights.safetensors"}).code, 0);
  folder_.write("second/summary.json", "{");
  EXPECT_THAT(error_of({"eval", "second"}), HasSubstr("second/summary.json: names no weights"));
}

TEST_F(NewDataCommand, AugmentsNothingButImages) {
  for (const char* const what : {"flip", "shift", "crop", "cutout"}) {
    EXPECT_THAT(error_of({"train", "--data=csv:table.csv,missing=mean", "--model=mlp",
                          fmt::format("--augment={}", what), "--out=none"}),
                HasSubstr(fmt::format("--augment {}: the samples of csv:table.csv,missing=mean, of "
                                      "4 features (2 columns of numbers, 1 of categories) in 2 "
                                      "classes, are not images; accepted: with samples of height x "
                                      "width",
                                      what)));
  }
}

}  // namespace
}  // namespace rubato
