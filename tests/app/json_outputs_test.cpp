// What commands print as JSON is as `rubato list schemas` or docs/schemas say, and nothing in them
// is never there.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "support/json_schema.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::JsonSchema;

class JsonOutputs : public test::CommandTest {
 protected:
  [[nodiscard]] JsonSchema schema(const std::string& name) const {
    const auto listed = nlohmann::json::parse(printed("list schemas"));
    if (listed.contains(name)) return JsonSchema(listed[name]);
    return JsonSchema(nlohmann::json::parse(
        test::read_file(std::filesystem::path(RUBATO_SCHEMAS) / (name + ".json"))));
  }
  void expect_valid(const JsonSchema& of, const std::string& json) const {
    EXPECT_EQ(of.violation(nlohmann::json::parse(json)), "");
  }
};

TEST_F(JsonOutputs, OfPlan) {
  const JsonSchema plan = schema("plan");
  folder_.write("t.csv", "step,batchsize,cores\n0,64,2\n1,128,3\n");
  expect_valid(plan, succeeds("plan --trace t.csv --on-trace-end cycle --dataset-size 512 --json "
                              "--indices"));
  expect_valid(plan, succeeds("plan --json"));
  EXPECT_THAT(plan.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfSimulate) {
  const JsonSchema simulate = schema("simulate");
  expect_valid(simulate, succeeds("simulate --trace spot:most=8,seed=3 --price 2.5 --cores 2,4 "
                                  "--epochs 1 --json"));
  expect_valid(simulate, succeeds("simulate --cluster hosts=2 --epochs 1 --json"));
  expect_valid(simulate, succeeds("simulate --trace constant:devices=4,hours=1 --on-trace-end hold "
                                  "--epochs 1 --price 1 --market spot --regret --json"));
  EXPECT_THAT(simulate.unseen(), IsEmpty());
  const JsonSchema mtbf = schema("simulate-mtbf");
  expect_valid(mtbf, succeeds("simulate --trace constant:devices=1 --on-trace-end hold --mtbf 100 "
                              "--cluster substep=1,checkpoint=8,restart=5,loses=checkpoint --json "
                              "--samples 64000 --epochs 9"));
  EXPECT_THAT(mtbf.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfTraceShow) {
  const JsonSchema trace = schema("trace");
  expect_valid(trace, succeeds("trace show elastic --json"));
  expect_valid(trace, succeeds("trace show walk:seed=4 --json"));
  folder_.write("priced.csv", "time,a,price\n0,1,0.5\n60,2,0.75\n120,,\n");
  expect_valid(trace, succeeds("trace show priced.csv --json"));
  expect_valid(trace, succeeds("trace show zone:a=priced.csv,b=spot:most=4,seed=5 --json"));
  EXPECT_THAT(trace.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfWhatIf) {
  const JsonSchema whatif = schema("whatif");
  folder_.write("t.csv", "step,batchsize,cores\n0,64,2\n1,128,3\n");
  succeeds(
      "train --model softmax --epochs 1 --trace t.csv --on-trace-end hold --fault core=0,step=3 "
      "--out run --quiet");
  expect_valid(whatif, succeeds("whatif run --json"));
  folder_.write("devices.csv", "seconds,count\n0,4\n57,2\n9999,\n");
  succeeds(
      "train --model quadratic:dim=5 --epochs 1 --trace devices.csv --clock virtual "
      "--cluster substep=10 --out timed --quiet");
  expect_valid(whatif, succeeds("whatif timed --json --seeds 1"));
  EXPECT_THAT(whatif.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfDiff) {
  const JsonSchema diff = schema("diff");
  const auto expect_different = [&](const test::Words& arguments) {
    const test::ProgramResult result = rubato(arguments);
    EXPECT_EQ(result.code, 1) << result.err;
    expect_valid(diff, result.out);
  };
  succeeds("train --model softmax --trace 1024 --epochs 1 --quiet --out a");
  succeeds("train --model softmax --trace 1024 --epochs 1 --kernels portable --quiet --out b");
  succeeds("train --from a@7 --seed 3 --quiet --out c");
  expect_valid(diff, succeeds("diff a b --json"));
  expect_different("diff a c --json --seeds");
  expect_different(
      {"diff", "--json", "--good", "--model softmax", "--bad", "--model softmax --lr 0.1"});
  expect_different({"diff", "--json", "--good", "--model softmax", "--bad", "--model mlp"});
  expect_different(
      {"diff", "--json", "--good", "--model softmax", "--bad", "--model softmax --clip-norm 0.1"});
  EXPECT_THAT(diff.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfBenchReduce) {
  const JsonSchema bench = schema("bench-reduce");
  expect_valid(bench, succeeds("bench reduce --cores 4 --size 1000 --strategy tree,ring --json "
                               "--fused"));
  EXPECT_THAT(bench.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfDoctor) {
  const JsonSchema doctor = schema("doctor");
  expect_valid(doctor, rubato("doctor --json").out);
  // Without libtorch there are no training's facts.
  for (const std::string& unseen : doctor.unseen()) EXPECT_THAT(unseen, StartsWith("/facts/"));
}

TEST_F(JsonOutputs, OfDoom) {
  const JsonSchema doom = schema("doom");
  const std::string run = "train --model quadratic:dim=5,samples=512 --trace 64 --quiet ";
  EXPECT_EQ(rubato(run + "--epochs 20 --lr 8 --out hot").code, 22);
  expect_valid(doom, succeeds("doom hot --orders 2 --json"));
  succeeds(run + "--epochs 2 --lr 0.05 --out fine");
  expect_valid(doom, succeeds("doom fine --orders 2 --json"));
  EXPECT_THAT(doom.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfList) {
  const JsonSchema list = schema("list");
  expect_valid(list, succeeds("list --json"));
  EXPECT_THAT(list.unseen(), IsEmpty());
  EXPECT_EQ(refusal("list schemas rules"),
            "rubato list: schemas are listed by themselves; accepted: without the name of a "
            "family\n");
}

TEST_F(JsonOutputs, OfATimeline) {
  const JsonSchema timeline = schema("timeline");
  succeeds(
      "train --model softmax --epochs 1 --fault core=1,step=3 --reduce tree --timeline all "
      "--quiet --out run");
  expect_valid(timeline, content("run/timeline.json"));
  succeeds("train --model softmax --epochs 1 --timeline all --quiet --out second");
  expect_valid(timeline, content("second/timeline.json"));
  EXPECT_THAT(timeline.unseen(), IsEmpty());
}

TEST_F(JsonOutputs, OfAnExperiment) {
  const JsonSchema answer = schema("answer");
  succeeds(
      "compare --model softmax --rule linear,root --seed 1..2 --epochs 1 --tune never --out first");
  expect_valid(answer, content("first/answer.json"));
  succeeds(
      "compare --model softmax --rule linear,root --seed 1..2 --trace spot:most=8,seed=3 "
      "--clock virtual --price 1 --tune lr=0.01,0.02 --tune-seeds 1 --target 80 --budget "
      "epochs=1 --out second");
  expect_valid(answer, content("second/answer.json"));
  succeeds(
      "compare --model softmax --rule linear,root --seed 1..2 --trace 256,elastic --epochs 1 "
      "--lr 0.02 --rates 2 --margin baseline --out third");
  expect_valid(answer, content("third/answer.json"));
  EXPECT_THAT(answer.unseen(), IsEmpty());
}

}  // namespace
}  // namespace rubato
