// What users see of runs whose devices end before they do.

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "base/core/file.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

class OutOfDevices : public test::CommandTest {
 protected:
  OutOfDevices() {
    // Three steps of 64 samples, of 60 s each.
    folder_.write("short.csv", "seconds,count\n0,2\n200,0\n1000,\n");
    folder_.write("rare.csv", "seconds,count\n0,2\n200,0\n100000,2\n200000,\n");
  }
};

TEST_F(OutOfDevices, IsAnEndOfItsOwn) {
  const auto result = rubato(
      "train --model=softmax --trace=short.csv --clock=virtual --cluster=substep=60,bytes=0 "
      "--on-trace-end=stop --epochs=2 --out=run");
  EXPECT_EQ(result.code, 30);
  EXPECT_THAT(result.out, AllOf(HasSubstr("stopped: out of devices\n"),
                                HasSubstr("modelled time 16:40, 0.1111 core-hours, idle 13:20, "
                                          "lost 20 s, 1 restart\n")));
  EXPECT_EQ(result.err,
            "rubato train: the availability has no devices for the rest of the training; a longer "
            "one, or --on-trace-end hold or cycle, has them\n");
  EXPECT_EQ(json_in("run/summary.json").at("stopped"), "out of devices");
  EXPECT_EQ(json_in("run/summary.json").at("samples"), 192);
}

TEST_F(OutOfDevices, IsLostInAComparison) {
  const auto result = rubato(
      "compare --model=softmax --trace=short.csv --clock=virtual --cluster=substep=60,bytes=0 "
      "--on-trace-end=stop --seed=1,2 --epochs=1 --rule=constant --tune=never --out=compared "
      "--jobs=1");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("2 of 2 out of devices"),
                                HasSubstr("out of devices (the availability had no devices for "
                                          "the rest of the training):")));
  const auto answer = json_in("compared/answer.json");
  for (const auto& cell : answer.at("cells")) {
    const bool is_short = !cell.at("baseline").get<bool>();
    EXPECT_EQ(cell.at("ends").at("out of devices") > 0, is_short) << cell.dump();
    EXPECT_EQ(cell.at("value").is_null(), is_short) << cell.dump();
  }
}

// Of 0.1 hours the last 160 s are waited for.
TEST_F(OutOfDevices, IsNotWaitedForBeyondTheBudget) {
  const auto compared = rubato(
      "compare --model=softmax --trace=rare.csv --budget=hours=0.1 --cluster=substep=60,bytes=0 "
      "--seed=1 --epochs=2 --rule=constant --tune=never --out=compared --jobs=1");
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, Not(HasSubstr("out of devices")));
  const auto answer = json_in("compared/answer.json");
  for (const auto& run : answer.at("runs")) {
    EXPECT_EQ(run.at("end"), "finished");
  }
  for (const auto& cell : answer.at("cells")) {
    EXPECT_NEAR(cell.at("spent").at("hours").get<double>(), 0.1, 0.1) << cell.dump();
  }
}

}  // namespace
}  // namespace rubato
