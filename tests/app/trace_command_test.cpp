#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/run_program.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using test::ProgramResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TraceCommand : public testing::Test {
 protected:
  // Plots are in ASCII unless a test says otherwise.
  TraceCommand() { setenv("LC_ALL", "C", 1); }

  [[nodiscard]] ProgramResult trace(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "trace");
    return test::rubato(arguments, folder_.path());
  }
  // What it prints, where nothing is wrong.
  [[nodiscard]] std::string printed(const std::vector<std::string>& arguments) const {
    const ProgramResult result = trace(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
  }
  [[nodiscard]] std::string error(const std::vector<std::string>& arguments) const {
    const ProgramResult result = trace(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return test::read_file(folder_.path() / name);
  }

  const test::TempFolder folder_;
};

TEST_F(TraceCommand, ImportsAFile) {
  folder_.write("gpus.csv", ",Time,GPUs\n0,100,8\n1,160,8\n2,220,3\n");
  const std::string csv = "seconds,count\n0,8\n60,8\n120,3\n180,\n";
  EXPECT_EQ(printed({"import", "gpus.csv"}), csv);
  EXPECT_EQ(printed({"import", "gpus.csv", "--out", "a.csv", "--format=samples"}),
            "availability  gpus.csv\nlength        3 min, a sample every 1 min\n"
            "devices       3 to 8, 6.3 on average\nchanges       1, 20.0 per hour\n"
            "at zero       never\n");
  EXPECT_EQ(file("a.csv"), csv);
  EXPECT_EQ(printed({"import", "a.csv"}), csv) << "what it writes it reads";
}

TEST_F(TraceCommand, Generates) {
  EXPECT_EQ(printed({"generate", "steps:devices=2/0,seconds=90"}),
            "seconds,count\n0,2\n90,0\n180,\n");
  EXPECT_EQ(printed({"generate", "spot:seed=3"}), printed({"generate", "spot:seed=3"}));
  EXPECT_THAT(printed({"generate", "steps:devices=2/0,seconds=90", "--out=a.csv"}),
              HasSubstr("at zero       50.0 % of the time, 1 min 30 s at the longest\n"));
}

TEST_F(TraceCommand, ConvertsAsTrainingWould) {
  folder_.write("e.csv", "0,add,a\n0,add,b\n0,add,c\n120000,remove,a\n180000,remove,b\n");
  const std::string csv = "step,batchsize,cores\n0,96,3\n1,96,3\n2,64,2\n";
  EXPECT_EQ(printed({"convert", "e.csv"}), csv);
  EXPECT_EQ(printed({"convert", "e.csv", "--format", "events", "--out", "t.csv"}),
            "trace    e.csv\nlength   3 steps, 256 samples\nbatch    64 to 96, 85.3 on average\n"
            "cores    2 to 3\nchanges  1\n");
  EXPECT_EQ(file("t.csv"), csv);
  EXPECT_EQ(printed({"convert", "e.csv", "--minibatch=8", "--availability",
                     "weak:quantum=2,seconds-per-step=90"}),
            "step,batchsize,cores\n0,16,2\n1,16,2\n");
  EXPECT_EQ(error({"convert", "t.csv"}),
            "rubato trace convert: t.csv is a trace of steps already; accepted: devices over time "
            "(docs/traces.md)\n");
}

// The last event lasts for no time: neither scales by it, whatever follows.
TEST_F(TraceCommand, ConvertsOnTheScaleOfTraining) {
  folder_.write("e.csv",
                "0,add,a\n0,add,b\n0,add,c\n0,add,d\n60000,remove,a\n60000,remove,b\n"
                "120000,add,e\n120000,add,f\n120000,add,g\n120000,add,h\n");
  const std::string policy = "--availability=weak:max-cores=2";
  EXPECT_EQ(printed({"convert", "e.csv", policy}), "step,batchsize,cores\n0,64,2\n1,32,1\n");
  EXPECT_THAT(printed({"convert", "e.csv", policy, "--out=t.csv"}),
              HasSubstr("scale    cores scaled by 2/4 to fit max-cores=2\n"));
  const ProgramResult trained =
      test::rubato({"train", "--model=quadratic:dim=8,samples=96", "--trace=e.csv", policy,
                    "--on-trace-end=hold", "--epochs=1", "--out=run"},
                   folder_.path());
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(file("run/trace.csv"), file("t.csv"));
  EXPECT_THAT(trained.out, HasSubstr("trace e.csv (cores scaled by 2/4 to fit max-cores=2)\n"));
}

TEST_F(TraceCommand, ShowsAnAvailability) {
  const std::string out = printed({"show", "steps:devices=8/4/0,seconds=3600"});
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
  EXPECT_THAT(printed({"show", "constant:devices=4"}), testing::EndsWith("devices over hours\n"));
  // A moment's outage is seen, however short.
  EXPECT_THAT(printed({"show", "steps:devices=8/0/8,seconds=86400/1/86400"}),
              HasSubstr("; # all of a column's time, : a part of it\n"));
}

TEST_F(TraceCommand, ShowsATrace) {
  folder_.write("t.csv", "step,batchsize\n0,32\n1,1024\n2,1024\n");
  EXPECT_THAT(printed({"show", "t.csv"}),
              AllOf(StartsWith("trace    t.csv\nlength   3 steps, 2,080 samples\n"),
                    HasSubstr("\n 1,024|    "),
                    HasSubstr("\n       0                       1                       2\n"),
                    HasSubstr("samples in a step over steps")));
}

TEST_F(TraceCommand, DrawsWithBlocksWhereTheTerminalHasThem) {
  const ProgramResult result =
      test::shell("LC_ALL=C.UTF-8 exec \"$0\" trace show constant:devices=4", folder_.path());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(" 4│████"), HasSubstr("└───")));
}

TEST_F(TraceCommand, SummarisesAsJson) {
  const auto summary =
      nlohmann::json::parse(printed({"show", "steps:devices=8/4/0,seconds=3600", "--json"}));
  EXPECT_EQ(summary["kind"], "availability");
  EXPECT_EQ(summary["length_seconds"], 10800);
  EXPECT_EQ(summary["sample_gap_seconds"], nullptr);
  EXPECT_EQ(summary["fewest"], 0);
  EXPECT_EQ(summary["most"], 8);
  EXPECT_EQ(summary["mean"], 4);
  EXPECT_EQ(summary["changes"], 2);
  EXPECT_EQ(summary["share_at_zero"], 1.0 / 3);
  folder_.write("t.csv", "step,batchsize,cores\n0,32,4\n1,64,\n");
  const auto trace_json = nlohmann::json::parse(printed({"show", "t.csv", "--json"}));
  EXPECT_EQ(trace_json["kind"], "trace");
  EXPECT_EQ(trace_json["steps"], 2);
  EXPECT_EQ(trace_json["most_cores"], 4);
}

TEST_F(TraceCommand, SaysWhatIsWrong) {
  EXPECT_THAT(error({"show", "none.csv"}),
              StartsWith("rubato trace show: no such file as 'none.csv'; "));
  EXPECT_THAT(error({"show", "spott:seed=1"}), HasSubstr("did you mean 'spot'?"));
  EXPECT_THAT(error({"generate", "spott"}), HasSubstr("unknown generator 'spott'"));
  EXPECT_THAT(error({"import"}),
              HasSubstr("no FILE is given; accepted: rubato trace import FILE [OPTIONS]"));
  EXPECT_THAT(error({"import", "a", "b"}), HasSubstr("'a' and 'b'; accepted: one FILE"));
  EXPECT_THAT(error({"import", "a", "--format=csv"}), HasSubstr("accepted: samples, events"));
  EXPECT_THAT(error({"convert", "spot", "--availability=strong"}), HasSubstr("needs a 'batch'"));
  EXPECT_THAT(error({"sho"}), HasSubstr("did you mean 'show'?"));
  folder_.write("bad.csv", "0,add,a\n5,remove,b\n");
  EXPECT_THAT(error({"show", "bad.csv"}),
              StartsWith("rubato trace show: bad.csv:2: 'b' is removed"));
  folder_.write("zones.csv", "time,us-a,us-b,eu-a\n0,1,2,4\n60,3,0,5\n");
  EXPECT_THAT(
      error({"import", "zones.csv"}),
      HasSubstr("zones.csv:1: 3 columns may count devices: us-a, us-b, eu-a; accepted: FILE,"
                "column=NAME"));
  EXPECT_THAT(error({"show", "zones.csv,zon=us"}), HasSubstr("did you mean 'zone'?"));
  EXPECT_THAT(error({"show", "zones.csv,zone=us,column=us-a"}),
              HasSubstr("zone: nothing is added to a column; accepted: one of the two"));
  EXPECT_EQ(printed({"import", "zones.csv,zone=us", "--format=samples"}),
            "seconds,count\n0,3\n60,3\n120,\n");
  EXPECT_EQ(printed({"import", "zones.csv,column=eu-a"}), "seconds,count\n0,4\n60,5\n120,\n");
  folder_.write("a,b=c.csv", "time,n\n0,1\n60,2\n");
  EXPECT_EQ(printed({"import", "a,b=c.csv"}), "seconds,count\n0,1\n60,2\n120,\n")
      << "there is such a file";
  EXPECT_THAT(trace({}).err, AllOf(HasSubstr("Usage: rubato trace COMMAND"),
                                   HasSubstr("trace what? accepted: import, generate")));
  EXPECT_THAT(printed({"--help"}), HasSubstr("generate"));
  test::expect_lost_output_is_said("trace show spot");
}

// A run keeps the steps, and goes on from them without the file.
TEST_F(TraceCommand, MadeTracesAreTrainedAndResumed) {
  folder_.write("e.csv", "0,add,a\n0,add,b\n600000,remove,a\n1200000,remove,b\n");
  const auto train = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "train");
    return test::rubato(arguments, folder_.path());
  };
  const std::vector<std::string> run{"--model=quadratic:dim=8,samples=64", "--trace=e.csv",
                                     "--availability=weak:seconds-per-step=30", "--minibatch=8",
                                     "--on-trace-end=cycle"};
  std::vector<std::string> whole = run;
  whole.insert(whole.end(), {"--epochs=4", "--out=whole"});
  EXPECT_EQ(train(whole).code, 0);
  std::vector<std::string> part = run;
  part.insert(part.end(), {"--epochs=2", "--out=part"});
  const ProgramResult result = train(part);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(file("part/trace.csv"), StartsWith("step,batchsize,cores\n0,16,2\n"));
  EXPECT_THAT(file("part/config.toml"), Not(HasSubstr("availability")));
  std::filesystem::remove(folder_.path() / "e.csv");
  EXPECT_EQ(train({"--resume=part", "--epochs=4"}).code, 0);
  EXPECT_EQ(file("part/weights.safetensors"), file("whole/weights.safetensors"));
  EXPECT_NE(file("part/weights.safetensors"), "");
  EXPECT_THAT(train({"--resume=part", "--epochs=5", "--availability=weak"}).err,
              HasSubstr("--availability: "));
  EXPECT_THAT(train({"--availability=weak", "--model=softmax"}).err,
              HasSubstr("--availability: elastic already says what every step is; accepted: "));
}

}  // namespace
}  // namespace rubato
