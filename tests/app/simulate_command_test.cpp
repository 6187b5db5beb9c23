#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

class SimulateCommand : public test::CommandTest {
 protected:
  [[nodiscard]] std::string printed(const test::Words& arguments) const {
    return CommandTest::printed("simulate" + arguments);
  }
  [[nodiscard]] nlohmann::json json_of(const test::Words& arguments) const {
    return nlohmann::json::parse(printed("--json" + arguments));
  }
  [[nodiscard]] std::string error(const test::Words& arguments) const {
    return refusal("simulate" + arguments);
  }
};

// By hand: 12,000 samples are 375 steps of one minibatch of 32 on one core, 2 s each.
TEST_F(SimulateCommand, SaysWhatATrainingTakes) {
  EXPECT_EQ(printed("--trace=32 --cores=1 --epochs=2 --cluster=substep=2 --price=3"),
            "epochs  steps  mean batch  cores   time  core-hours  money  samples/hour  "
            "samples/core-hour  idle  lost  restarting  restarts\n"
            "     2    750          32      1  25:00      0.4167   1.25        57,600  "
            "           57,600   0 s   0 s         0 s         0\n");
}

// 375 minibatches a pass: eight cores take 46 of a step of 8 minibatches each, four take two turns.
TEST_F(SimulateCommand, ComparesAllCombinations) {
  const auto runs = json_of(
      "--trace=256 --epochs=1 --cores=4,8 --cluster=substep=1,bytes=0 --cluster "
      "substep=10,update=1,bytes=0 --price 3600");
  ASSERT_EQ(runs.size(), 4U);
  const auto run = [&](std::size_t i, const char* cores, const char* cluster, double seconds,
                       double of_cores) {
    SCOPED_TRACE(i);
    EXPECT_EQ(runs[i].at("options"), nlohmann::json({{"cores", cores}, {"cluster", cluster}}));
    EXPECT_EQ(runs[i].at("steps"), 46);
    EXPECT_EQ(runs[i].at("samples"), 46 * 256);
    EXPECT_EQ(runs[i].at("mean_batch"), 256);
    EXPECT_NEAR(runs[i].at("clock").at("hours").get<double>() * 3600, seconds, 1e-6);
    EXPECT_NEAR(runs[i].at("clock").at("money").get<double>(), seconds * of_cores, 1e-6);
    EXPECT_EQ(runs[i].at("ended_by"), nullptr);
  };
  run(0, "4", "substep=1,bytes=0", 46 * 2, 4);
  run(1, "4", "substep=10,update=1,bytes=0", 46 * 21, 4);
  run(2, "8", "substep=1,bytes=0", 46, 8);
  run(3, "8", "substep=10,update=1,bytes=0", 46 * 11, 8);
}

// As many as HostTraffic says: two hosts send 15,736 and 15,700 bytes in a step.
TEST_F(SimulateCommand, HasHosts) {
  EXPECT_THAT(
      printed("--model=softmax --trace=64 --cores=2 --samples=64 --cluster=substep=1,hosts=2,"
              "latency=0.1,bandwidth=31440,memory-bandwidth=31400,update=0.5"),
      AllOf(HasSubstr("bytes/step"), HasSubstr("31,436")));
  EXPECT_EQ(json_of("--trace=64 --samples=64").at(0).at("host_bytes_per_step"), 0);
}

TEST_F(SimulateCommand, SaysWhatEndsIt) {
  EXPECT_THAT(printed("--trace=32 --cores=1 --cluster=substep=2 --hours=0.1"),
              HasSubstr("0.1 hours of the clock reached\n"));
  folder_.write("devices.csv", "seconds,count\n0,2\n95,\n");
  EXPECT_THAT(printed("--trace=devices.csv --cluster=substep=10 --on-trace-end=stop"),
              HasSubstr("out of devices\n"));
}

TEST_F(SimulateCommand, RefusesWhatItCannotDo) {
  folder_.write("devices.csv", "seconds,count\n0,2\n95,\n");
  EXPECT_EQ(error("--trace=devices.csv --cluster=substep=10"),
            "rubato simulate: devices.csv at 90 s, step 10 of the run: the availability ends at 95 "
            "s, and there is more to train; accepted: a longer one, or --on-trace-end hold, cycle "
            "or stop\n");
  EXPECT_EQ(error("--trace=devices.csv --cluster=substep=100 --on-trace-end=stop"),
            "rubato simulate: --trace devices.csv: there is no step to simulate; accepted: devices "
            "that stay as long as a step takes, within the budget\n");
  EXPECT_EQ(error("--cores=4,0"),
            "rubato simulate: --cores: '0' is out of range; accepted: a whole number from 1 to "
            "1048576\n");
  EXPECT_THAT(error("--clock=real"), StartsWith("rubato simulate: unknown option '--clock"));
  EXPECT_EQ(error("--cores=1..999 --minibatch=1..999"),
            "rubato simulate: --minibatch: all combinations are more than 100000 runs; accepted: "
            "fewer values\n");
  EXPECT_THAT(
      error("--money=3"),
      HasSubstr("--money: nothing costs anything; accepted: with --price, or --cluster with "
                "on-demand-price or egress"));
}

// By hand: of two devices one leaves after 200 s, the other after 1000, each in a step of 60 s that
// is lost; and each time a restart takes half a minute.
TEST_F(SimulateCommand, SaysWhatRestartsTake) {
  folder_.write("leaving.csv", "seconds,count\n0,2\n200,1\n1000,\n");
  EXPECT_THAT(
      printed("--model=softmax --trace=leaving.csv --on-trace-end=stop --epochs=1 "
              "--cluster=substep=60,bytes=0,restart=30"),
      HasSubstr(" idle  lost  restarting  restarts  ended by\n     0     15          38  1 to "
                "2  17:10      0.3333         2,013              1,728   0 s  1:10        1:00     "
                "    2  "
                "out of devices\n"));
}

// A step of one minibatch takes a second, and a checkpoint 8 s: Young's interval is 40 s for
// failures every 100 s.
TEST_F(SimulateCommand, FindsTheBestIntervalBetweenCheckpoints) {
  const test::Words training =
      "--trace=constant:devices=1 --on-trace-end=hold --samples=64000 --epochs=9 "
      "--cluster=substep=1,checkpoint=8,restart=5,loses=checkpoint";
  const auto rows = json_of(training + "--mtbf=100,0.5h");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("mtbf_seconds"), 100);
  EXPECT_EQ(rows[1].at("mtbf_seconds"), 1800);
  EXPECT_EQ(rows[0].at("undisturbed_samples_per_hour"), 32 * 3600);
  EXPECT_EQ(rows[0].at("young").at("steps"), 40);
  // sqrt(2 x 8 x 100) (1 + sqrt(0.04) / 3 + 0.04 / 9) - 8
  EXPECT_EQ(rows[0].at("daly").at("steps"), 35);
  for (const auto& row : rows) {
    const double best = row.at("best").at("samples_per_hour");
    EXPECT_GE(best, row.at("daly").at("samples_per_hour"));
    // Where failures are random, the formula is good.
    EXPECT_LT(best, 1.1 * row.at("daly").at("samples_per_hour").get<double>());
  }
  // With many failures the best is near, too.
  EXPECT_NEAR(rows[0].at("best").at("seconds").get<double>(), 35, 15);
  EXPECT_THAT(printed(training + "--mtbf=2m"), HasSubstr("young: steps"));
  EXPECT_THAT(error("--trace=64 --mtbf=1h"), HasSubstr("--cluster with checkpoint=SECONDS"));
  EXPECT_THAT(error(training + "--mtbf=often"),
              HasSubstr("'often' is not a time; accepted: such as 4h"));
}

// A step of 20 s and its checkpoint of 60 s do not come through between failures every 3.6 s.
TEST_F(SimulateCommand, SaysThatATrainingNeverEnds) {
  const test::Words training =
      "--trace=constant:devices=8 --on-trace-end=hold --epochs=50 --mtbf=0.001h,4h "
      "--cluster=substep=20,checkpoint=60,restart=120,loses=checkpoint";
  const auto rows = json_of(training);
  EXPECT_EQ(rows[0].at("best"), nullptr);
  EXPECT_EQ(rows[0].at("young").at("samples_per_hour"), 0);
  EXPECT_GT(rows[1].at("best").at("samples_per_hour"), 0);
  EXPECT_THAT(printed(training), ContainsRegex("\n  3.6 s .* -  +-  +never ends\n4:00:00 "));
}

// By hand: 46 steps of 8 minibatches take 2 s each on the four devices that leave after 40 s, 20 of
// them at a price of 1 in a device-second, and the 26 others at 3 on demand. After that, 0 s before
// the spot devices come back at 1000 s, the deadline is over.
TEST_F(SimulateCommand, ComparesPoliciesWithTheOptimum) {
  folder_.write("spot.csv", "seconds,count\n0,4\n40,0\n1000,4\n10000,\n");
  const test::Words arguments =
      "--trace=spot.csv --on-trace-end hold --availability strong:batch=256 --epochs=1 "
      "--price=3600 --market on-demand,greedy,spot --deadline=0.05 --regret "
      "--cluster=substep=1,bytes=0,on-demand=4,on-demand-price=10800";
  const auto runs = json_of(arguments);
  ASSERT_EQ(runs.size(), 4U);
  constexpr double kOptimum = (20 * 1 + 26 * 3) * 2.0 * 4;
  const auto regret = [&](std::size_t i, const char* market, bool missed, double money) {
    SCOPED_TRACE(market);
    const auto& of = runs[i].at("regret");
    EXPECT_EQ(runs[i].at("options").at("market"), market);
    EXPECT_EQ(of.at("proven"), true);
    EXPECT_NEAR(of.at("optimum").get<double>(), kOptimum, 1e-6);
    EXPECT_EQ(of.at("missed"), missed);
    if (missed) {
      EXPECT_EQ(of.at("money"), nullptr);
    } else {
      EXPECT_NEAR(of.at("money").get<double>(), money, 1e-6);
      EXPECT_NEAR(of.at("percent").get<double>(), money / kOptimum * 100, 1e-6);
    }
  };
  regret(0, "on-demand", false, 46 * 3 * 2 * 4 - kOptimum);
  regret(1, "greedy", false, 0);
  regret(2, "spot", true, 0);
  regret(3, "optimum", false, 0);
  EXPECT_THAT(printed(arguments), HasSubstr("missed"));
  EXPECT_THAT(error("--trace=spot.csv --on-trace-end hold --regret"), HasSubstr("with --market"));
  EXPECT_THAT(error("--trace=spot.csv --on-trace-end hold --regret --market spot --samples 512"),
              HasSubstr("without a budget of samples"));
  EXPECT_THAT(error("--trace=spot.csv --on-trace-end cycle --regret --market spot"),
              HasSubstr("with a deadline"));
}

}  // namespace
}  // namespace rubato
