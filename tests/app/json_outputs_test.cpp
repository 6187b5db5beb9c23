// docs/schemas: what commands print as JSON is as the schemas say, and nothing in them is never
// there.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/doc_commands.hpp"
#include "app/run_program.hpp"
#include "support/json_schema.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::JsonSchema;
using testing::IsEmpty;

class JsonOutputs : public testing::Test {
 protected:
  [[nodiscard]] static JsonSchema schema(const std::string& name) {
    return JsonSchema(nlohmann::json::parse(
        test::read_file(std::filesystem::path(RUBATO_SCHEMAS) / (name + ".json"))));
  }
  [[nodiscard]] std::string printed(const std::string& command) const {
    const test::ProgramResult result = test::rubato(test::words_of(command), folder_.path());
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    return result.out;
  }
  void run(const std::string& command) const { static_cast<void>(printed(command)); }
  void expect_valid(const JsonSchema& of, const std::string& json) const {
    EXPECT_EQ(of.violation(nlohmann::json::parse(json)), "");
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return test::read_file(folder_.path() / name);
  }

  test::TempFolder folder_;
};

TEST_F(JsonOutputs, OfPlan) {
  const JsonSchema plan = schema("plan");
  folder_.write("t.csv", "step,batchsize,cores\n0,64,2\n1,128,3\n");
  expect_valid(plan, printed("plan --trace t.csv --on-trace-end cycle --dataset-size 512 --json "
                             "--indices"));
  expect_valid(plan, printed("plan --json"));
  EXPECT_THAT(plan.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfSimulate) {
  const JsonSchema simulate = schema("simulate");
  expect_valid(simulate, printed("simulate --trace spot:most=8,seed=3 --price 2.5 --cores 2,4 "
                                 "--epochs 1 --json"));
  expect_valid(simulate, printed("simulate --cluster hosts=2 --epochs 1 --json"));
  EXPECT_THAT(simulate.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfTraceShow) {
  const JsonSchema trace = schema("trace");
  expect_valid(trace, printed("trace show elastic --json"));
  expect_valid(trace, printed("trace show walk:seed=4 --json"));
  EXPECT_THAT(trace.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfBenchReduce) {
  const JsonSchema bench = schema("bench-reduce");
  expect_valid(bench, printed("bench reduce --cores 4 --size 1000 --strategy tree,ring --json "
                              "--fused"));
  EXPECT_THAT(bench.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfDoctor) {
  const JsonSchema doctor = schema("doctor");
  expect_valid(doctor, printed("doctor --json"));
  // Without libtorch there are no training's facts.
  for (const std::string& unseen : doctor.unseen())
    EXPECT_THAT(unseen, testing::StartsWith("/facts/"));
}

TEST_F(JsonOutputs, OfList) {
  const JsonSchema list = schema("list");
  expect_valid(list, printed("list --json"));
  EXPECT_THAT(list.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfATimeline) {
  const JsonSchema timeline = schema("timeline");
  run("train --model softmax --epochs 1 --fault core=1,step=3 --reduce tree --timeline all "
      "--quiet --out run");
  expect_valid(timeline, file("run/timeline.json"));
  run("train --model softmax --epochs 1 --timeline all --quiet --out second");
  expect_valid(timeline, file("second/timeline.json"));
  EXPECT_THAT(timeline.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfAnExperiment) {
  const JsonSchema answer = schema("answer");
  run("compare --model softmax --rule linear,root --seed 1..2 --epochs 1 --out first");
  expect_valid(answer, file("first/answer.json"));
  run("compare --model softmax --rule linear,root --seed 1..2 --trace spot:most=8,seed=3 "
      "--clock virtual --price 1 --tune lr=0.01,0.02 --tune-seeds 1 --target 80 --budget "
      "epochs=1 --out second");
  expect_valid(answer, file("second/answer.json"));
  EXPECT_THAT(answer.unseen(), IsEmpty());
}

}  // namespace
}  // namespace rubato
