#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/command_test.hpp"
#include "support/json_fields.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::ProgramResult;

class TraceCommand : public test::CommandTest {
 protected:
  // Plots are in ASCII unless a test says otherwise.
  TraceCommand() { setenv("LC_ALL", "C", 1); }

  [[nodiscard]] std::string printed(const test::Words& arguments) const {
    return CommandTest::printed("trace" + arguments);
  }
  [[nodiscard]] std::string error(const test::Words& arguments) const {
    return refusal("trace" + arguments);
  }
};

TEST_F(TraceCommand, ImportsAFile) {
  folder_.write("gpus.csv", ",Time,GPUs\n0,100,8\n1,160,8\n2,220,3\n");
  const std::string csv = "seconds,count\n0,8\n60,8\n120,3\n180,\n";
  EXPECT_EQ(printed("import gpus.csv"), csv);
  EXPECT_EQ(printed("import gpus.csv --out a.csv --format=samples"),
            "availability  gpus.csv\nlength        3 min, a sample every 1 min\n"
            "devices       3 to 8, 6.3 on average\nchanges       1, 20.0 per hour\n"
            "at zero       never\n");
  EXPECT_EQ(content("a.csv"), csv);
  EXPECT_EQ(printed("import a.csv"), csv) << "what it writes it reads";
}

TEST_F(TraceCommand, Generates) {
  EXPECT_EQ(printed("generate steps:devices=2/0,seconds=90"), "seconds,count\n0,2\n90,0\n180,\n");
  EXPECT_EQ(printed("generate spot:seed=3"), printed("generate spot:seed=3"));
  EXPECT_THAT(printed("generate steps:devices=2/0,seconds=90 --out=a.csv"),
              HasSubstr("at zero       50.0 % of the time, 1 min 30 s at the longest\n"));
}

TEST_F(TraceCommand, ConvertsAsTrainingWould) {
  folder_.write("e.csv", "0,add,a\n0,add,b\n0,add,c\n120000,remove,a\n180000,remove,b\n");
  const std::string csv = "step,batchsize,cores\n0,96,3\n1,96,3\n2,64,2\n";
  EXPECT_EQ(printed("convert e.csv"), csv);
  EXPECT_EQ(printed("convert e.csv --format events --out t.csv"),
            "trace    e.csv\nlength   3 steps, 256 samples\nbatch    64 to 96, 85.3 on average\n"
            "cores    2 to 3\nchanges  1\n");
  EXPECT_EQ(content("t.csv"), csv);
  EXPECT_EQ(
      printed("convert e.csv --minibatch=8 --availability weak:quantum=2,seconds-per-step=90"),
      "step,batchsize,cores\n0,16,2\n1,16,2\n");
  EXPECT_EQ(error("convert t.csv"),
            "rubato trace convert: t.csv is a trace of steps already; accepted: devices over time "
            "(docs/traces.md)\n");
}

// The last event lasts for no time: neither scales by it, whatever follows.
TEST_F(TraceCommand, ConvertsOnTheScaleOfTraining) {
  folder_.write("e.csv",
                "0,add,a\n0,add,b\n0,add,c\n0,add,d\n60000,remove,a\n60000,remove,b\n"
                "120000,add,e\n120000,add,f\n120000,add,g\n120000,add,h\n");
  const std::string policy = "--availability=weak:max-cores=2";
  EXPECT_EQ(printed("convert e.csv " + policy), "step,batchsize,cores\n0,64,2\n1,32,1\n");
  EXPECT_THAT(printed("convert e.csv " + policy + " --out=t.csv"),
              HasSubstr("scale    cores scaled by 2/4 to fit max-cores=2\n"));
  const std::string trained = succeeds(
      "train --model=quadratic:dim=8,samples=96 --trace=e.csv --on-trace-end=hold --epochs=1 "
      "--out=run " +
      policy);
  EXPECT_EQ(content("run/trace.csv"), content("t.csv"));
  EXPECT_THAT(trained, HasSubstr("trace e.csv (cores scaled by 2/4 to fit max-cores=2)\n"));
}

TEST_F(TraceCommand, ShowsAnAvailability) {
  const std::string out = printed("show steps:devices=8/4/0,seconds=3600");
  EXPECT_THAT(
      out, AllOf(StartsWith("availability  steps:devices=8/4/0,seconds=3600\nlength        3 h\n"),
                 HasSubstr("\n\n 8|####"), HasSubstr("\n 4|######"),
                 HasSubstr("devices over minutes; ")));
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
  // One number all the time needs no explanation.
  EXPECT_THAT(printed("show constant:devices=4"), EndsWith("devices over hours\n"));
  // A moment's outage is seen, however short.
  EXPECT_THAT(printed("show steps:devices=8/0/8,seconds=86400/1/86400"),
              HasSubstr("; # all of a column's time, : a part of it\n"));
}

TEST_F(TraceCommand, ShowsATrace) {
  folder_.write("t.csv", "step,batchsize\n0,32\n1,1024\n2,1024\n");
  EXPECT_THAT(printed("show t.csv"),
              AllOf(StartsWith("trace    t.csv\nlength   3 steps, 2,080 samples\n"),
                    HasSubstr("\n 1,024|    "),
                    HasSubstr("\n       0                       1                       2\n"),
                    HasSubstr("samples in a step over steps")));
}

TEST_F(TraceCommand, ShowsEachZone) {
  EXPECT_THAT(printed("show zone:a=constant:devices=4,b=constant:devices=6"),
              AllOf(StartsWith("zone a\navailability  constant:devices=4\n"),
                    HasSubstr("devices over hours\n\nzone b\navailability  constant:devices=6\n")));
}

TEST_F(TraceCommand, DrawsWithBlocksWhereTheTerminalHasThem) {
  const ProgramResult result =
      test::shell("LC_ALL=C.UTF-8 exec \"$0\" trace show constant:devices=4", folder_.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(" 4│████"), HasSubstr("└───")));
}

// A market of machines of 4 devices leads back to its numbers, and the generator makes a year.
TEST_F(TraceCommand, SummarisesAsJson) {
  const auto summary =
      nlohmann::json::parse(printed("show steps:devices=8/4/0,seconds=3600 --json"));
  test::expect_fields(summary, R"({"kind": "availability", "length_seconds": 10800,
        "sample_gap_seconds": null, "fewest": 0, "most": 8, "mean": 4,
        "changes": 2})");
  EXPECT_EQ(summary["share_at_zero"], 1.0 / 3);
  folder_.write("t.csv", "step,batchsize,cores\n0,32,4\n1,64,\n");
  const auto trace_json = nlohmann::json::parse(printed("show t.csv --json"));
  test::expect_fields(trace_json, R"({"kind": "trace", "steps": 2, "most_cores": 4})");
}

TEST_F(TraceCommand, SaysWhatWasReadBesidesTheDevices) {
  folder_.write("z.csv", "time,w1-a,w10-a,price\n0,1,2,0.5\n60,1,2,0.75\n120,,,\n");
  const std::string shown = printed("show z.csv,zone=w1");
  const std::string prices = "0.5 to 0.75 for a device and hour, 0.625 on average, 1 change\n";
  EXPECT_THAT(shown, HasSubstr("prices        " + prices));
  EXPECT_THAT(shown, HasSubstr("columns       w1-a\n"));
  const auto shown_json = nlohmann::json::parse(printed("show z.csv,zone=w1 --json"));
  EXPECT_EQ(shown_json["prices"], nlohmann::json({{"lowest", 0.5},
                                                  {"highest", 0.75},
                                                  {"mean", 0.625},
                                                  {"changes", 1},
                                                  {"hours_without", 0.0}}));
  EXPECT_EQ(shown_json["columns"], nlohmann::json({"w1-a"}));
  EXPECT_EQ(nlohmann::json::parse(printed("show spot --json"))["prices"], nullptr);
  const std::string said = "the devices are those of w1-a\n";
  for (const char* const command :
       {"trace import z.csv,zone=w1", "plan --trace z.csv,zone=w1 --epochs 1 --on-trace-end cycle",
        "simulate --trace z.csv,zone=w1 --on-trace-end cycle --samples 320"}) {
    const test::ProgramResult result = rubato(command);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, EndsWith(": " + said)) << command;
  }
  EXPECT_EQ(rubato("trace import z.csv,zone=w1 --out o.csv").err, "") << "the summary has it";
  const std::string cycle = " --on-trace-end cycle";
  EXPECT_THAT(succeeds("plan --epochs 1 --trace z.csv,zone=w1" + cycle),
              HasSubstr("\nprice  " + prices));
  EXPECT_THAT(succeeds("simulate --samples 320 --trace z.csv,zone=w1" + cycle),
              HasSubstr("\n\nprices of z.csv: " + prices));
  folder_.write("free.csv", "time,n\n0,1\n60,\n");
  for (const char* const command :
       {"plan --epochs 1 --trace ", "simulate --samples 320 --trace "}) {
    EXPECT_THAT(succeeds(command + ("free.csv" + cycle)), Not(HasSubstr("price"))) << command;
  }
}

// The case of files that were recorded by one clock: b begins an hour after a.
TEST_F(TraceCommand, ShowsZonesOnTheirClock) {
  folder_.write("a.csv", "seconds,count\n1700000000,4\n1700000600,0\n1700001200,\n");
  folder_.write("b.csv", "seconds,count\n1700003600,4\n1700007200,4\n1700010800,\n");
  const std::string shown = printed("show zone:a=a.csv,b=b.csv");
  EXPECT_THAT(shown, HasSubstr("begins        after 1 h, with its first sample\n"));
  EXPECT_THAT(shown, Not(HasSubstr("prices")));
  folder_.write("c.csv", "seconds,count,price\n1700003600,4,2\n1700007200,4,\n");
  EXPECT_THAT(printed("show zone:a=a.csv,c=c.csv"),
              HasSubstr("prices        2 for a device and hour, none for 1 h\n"));
  EXPECT_THAT(succeeds("simulate --trace zone:a=a.csv,c=c.csv --samples 128"),
              HasSubstr("\nprices of c in zone:a=a.csv,c=c.csv: 2 for a device and hour, none for "
                        "1 h\n"));
  const auto zones = nlohmann::json::parse(printed("show zone:a=a.csv,b=b.csv --json"))["zones"];
  EXPECT_EQ(zones[0]["availability"]["begins_seconds"], 0);
  EXPECT_EQ(zones[1]["availability"]["begins_seconds"], 3600);
  // 48 steps of 128 samples, 12 s each: 50 in a, which would be 600 s, but for one in b.
  const auto runs = nlohmann::json::parse(succeeds(
      "simulate --json --trace zone:a=a.csv,b=b.csv --availability weak:samples-per-device=32 "
      "--cluster substep=12,bytes=0 --samples 6528 --epochs 9"));
  EXPECT_NEAR(runs[0]["clock"]["hours"].get<double>() * 3600, 3600 + 12, 1e-6);
  EXPECT_NEAR(runs[0]["clock"]["idle_hours"].get<double>() * 3600, 3000, 1e-6);
}

TEST_F(TraceCommand, SaysWhatIsWrong) {
  folder_.write("bad.csv", "0,add,a\n5,remove,b\n");
  folder_.write("zones.csv", "time,us-a,us-b,eu-a\n0,1,2,4\n60,3,0,5\n");
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"show none.csv", "rubato trace show: no such file as 'none.csv'; "},
           {"show spott:seed=1", "did you mean 'spot'?"},
           {"generate spott", "unknown generator 'spott'"},
           {"import", "no FILE is given; accepted: rubato trace import FILE [OPTIONS]"},
           {"import a b", "'a' and 'b'; accepted: one FILE"},
           {"import a --format=csv", "accepted: samples, events"},
           {"convert spot --availability=strong", "needs a 'batch'"},
           {"sho", "did you mean 'show'?"},
           {"show bad.csv", "rubato trace show: bad.csv:2: 'b' is removed"},
           {"import zones.csv", "zones.csv:1: 3 columns may count devices: us-a, us-b, eu-a"},
           {"show zones.csv,zon=us", "did you mean 'zone'?"},
           {"convert zone:zones.csv", "zones.csv: there are 3 zones; accepted: the devices of "},
           {"import zone:zones.csv", "zones, where the devices of one are needed"},
           {"show zones.csv,zone=us,column=us-a", "zone: nothing is added to a column"}}) {
    EXPECT_THAT(error(arguments), HasSubstr(message));
  }
  EXPECT_EQ(rubato("trace import zones.csv,zone=us --format=samples").out,
            "seconds,count\n0,3\n60,3\n120,\n");
  EXPECT_EQ(rubato("trace import zones.csv,column=eu-a").out, "seconds,count\n0,4\n60,5\n120,\n");
  folder_.write("a,b=c.csv", "time,n\n0,1\n60,2\n");
  EXPECT_EQ(printed("import a,b=c.csv"), "seconds,count\n0,1\n60,2\n120,\n")
      << "there is such a file";
  EXPECT_THAT(error({}), AllOf(HasSubstr("Usage: rubato trace COMMAND"),
                               HasSubstr("trace what? accepted: import, generate")));
  EXPECT_THAT(printed("--help"), HasSubstr("generate"));
  test::expect_lost_output_is_said("trace show spot");
}

// A run keeps the steps, and goes on from them without the file.
TEST_F(TraceCommand, MadeTracesAreTrainedAndResumed) {
  folder_.write("e.csv", "0,add,a\n0,add,b\n600000,remove,a\n1200000,remove,b\n");
  const std::string run =
      "train --model=quadratic:dim=8,samples=64 --trace=e.csv --minibatch=8 --on-trace-end=cycle "
      "--availability=weak:seconds-per-step=30 ";
  succeeds(run + "--epochs=4 --out=whole");
  succeeds(run + "--epochs=2 --out=part");
  EXPECT_THAT(content("part/trace.csv"), StartsWith("step,batchsize,cores\n0,16,2\n"));
  EXPECT_THAT(content("part/config.toml"), Not(HasSubstr("availability")));
  std::filesystem::remove(file("e.csv"));
  succeeds("train --resume=part --epochs=4");
  EXPECT_EQ(content("part/weights.safetensors"), content("whole/weights.safetensors"));
  EXPECT_NE(content("part/weights.safetensors"), "");
  EXPECT_THAT(refusal("train --resume=part --epochs=5 --availability=weak"),
              HasSubstr("--availability: "));
  EXPECT_THAT(refusal("train --availability=weak --model=softmax"),
              HasSubstr("--availability: elastic already says what every step is; accepted: "));
}

}  // namespace
}  // namespace rubato
