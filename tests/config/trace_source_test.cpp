#include "runs/config/values/trace_source.hpp"

#include <variant>

#include <gmock/gmock.h>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

Trace load_trace(const RunConfiguration& run) {
  return std::get<Trace>(load_run_steps(run));
}

Trace loaded(const std::string& trace, std::optional<TraceEnd> end = {},
             const std::string& availability = {}) {
  RunConfiguration run;
  run.trace = trace;
  run.on_trace_end = end;
  run.availability = availability;
  return load_trace(run);
}

TraceChoice named(const std::string& trace) {
  return *Parsed<TraceChoice>(trace);
}

std::string error_loading(const std::string& trace, const std::string& availability = {}) {
  return error_of([&] { return loaded(trace, {}, availability); });
}

TEST(TraceSource, NamesTheBuiltInTrace) {
  EXPECT_EQ(loaded("elastic").end(), TraceEnd::cycle);
  EXPECT_EQ(loaded("elastic", TraceEnd::stop).end(), TraceEnd::stop);
  EXPECT_EQ(loaded("elastic", TraceEnd::stop).steps(), Trace::elastic().steps());
  EXPECT_TRUE(named("elastic").is_built_in());
  EXPECT_EQ(named("elastic").file, std::nullopt);
}

TEST(TraceSource, TakesANumberForAConstant) {
  const Trace trace = loaded("128", TraceEnd::error);
  EXPECT_EQ(trace.source(), "constant 128");
  EXPECT_TRUE(trace.endless());
  EXPECT_TRUE(named("128").is_built_in());
  EXPECT_EQ(named("128").batch_size, 128);
  EXPECT_EQ(named("128").file, std::nullopt);
}

TEST(TraceSource, ReadsAFile) {
  const test::TempFolder folder;
  const std::string file = folder.write("128.csv", "step,batchsize\n0,32\n");
  EXPECT_EQ(loaded(file).end(), TraceEnd::error);
  EXPECT_EQ(loaded(file, TraceEnd::hold).end(), TraceEnd::hold);
  EXPECT_EQ(loaded(file).source(), file);
  EXPECT_EQ(named(file).file, file);
}

// A pipe could not be read again.
TEST(TraceSource, ReadsAFileOnceForAllCopies) {
  const test::TempFolder folder;
  const std::string file = folder.write("a.csv", "step,batchsize\n0,32\n");
  RunConfiguration run;
  run.trace = file;
  const RunConfiguration copy = run;
  EXPECT_EQ(load_trace(run).steps(), (std::vector<TraceStep>{{.batch_size = 32}}));
  std::filesystem::remove(file);
  EXPECT_EQ(load_trace(copy).steps(), (std::vector<TraceStep>{{.batch_size = 32}}));
  EXPECT_THAT(error_loading(file), HasSubstr("no such file")) << "a value of its own";
}

TEST(TraceSource, ReadsAFileOnceForAllEnds) {
  const test::TempFolder folder;
  const std::string steps = folder.write("steps.csv", "step,batchsize\n0,32\n");
  const std::string devices = folder.write("devices.csv", "seconds,count\n0,4\n60,2\n120,\n");
  const std::string zones = folder.write("zones.csv", "time,a,b\n1700000000,2,4\n1700000060,3,1\n");
  for (const std::string& text : {steps, devices, "zone:" + zones}) {
    const Parsed<TraceChoice> trace = text;
    const auto end_of = [&](TraceEnd end) {
      return std::visit([](const auto& of) { return of.end(); }, load_steps(trace, end, ""));
    };
    EXPECT_EQ(end_of(TraceEnd::stop), TraceEnd::stop);
    std::filesystem::remove(trace->file.value());
    EXPECT_EQ(end_of(TraceEnd::hold), TraceEnd::hold);
    EXPECT_EQ(end_of(TraceEnd::cycle), TraceEnd::cycle);
    EXPECT_EQ(source_of(load_steps(trace, TraceEnd::hold, "")), trace->file.value());
    if (text != steps) continue;
    const auto held = std::get<Trace>(load_steps(trace, TraceEnd::hold, ""));
    EXPECT_EQ(held.where(StepIndex{9}), steps + ":2") << "it is a file's";
  }
}

TEST(TraceSource, TakesTheColumnsOfAFile) {
  const test::TempFolder folder;
  const std::string file = folder.write("zones,1.csv", "time,us-a,eu-a\n0,2,4\n60,3,1\n");
  EXPECT_EQ(named(file + ",zone=us").file, file);
  EXPECT_EQ(named(file + ",zone=us").columns.zone, "us");
  EXPECT_EQ(loaded(file + ",column=eu-a", {}, "weak:seconds-per-step=60").steps()[0].cores, 4);
  EXPECT_EQ(loaded(file + ",zone=all", {}, "weak:seconds-per-step=60").steps()[0].cores, 6);
  EXPECT_EQ(map_trace(file + ",zone=us",
                      [](const std::filesystem::path& path) { return "/data" / path.filename(); }),
            "/data/zones,1.csv,zone=us");
  EXPECT_THAT(error_of([&] { return named(file + ",colum=us"); }),
              HasSubstr("unknown argument of FILE 'colum'; did you mean 'column'?"));
}

std::vector<std::string> zones_of(const std::string& text) {
  std::vector<std::string> zones;
  const TraceChoice choice = named(text);
  for (const ZoneTrace& zone : choice.zones) {
    zones.push_back(zone.name + " = " + zone.trace.text());
  }
  return zones;
}

TEST(TraceSource, TakesZonesByName) {
  EXPECT_THAT(zones_of("zone:a=one.csv,b=spot:most=8,seed=1,c=walk"),
              ElementsAre("a = one.csv", "b = spot:most=8,seed=1", "c = walk"));
  // An argument of the file or the generator before it is no zone.
  EXPECT_THAT(zones_of("zone:a=one.csv,zone=us,seed=two.csv"),
              ElementsAre("a = one.csv,zone=us", "seed = two.csv"));
  EXPECT_THAT(named("zone:zones.csv,zone=us").zones, IsEmpty());
  EXPECT_EQ(named("zone:zones.csv,zone=us").file, "zones.csv");
  EXPECT_EQ(named("zone:zones.csv,zone=us").columns.zone, "us");
  // Paths may look like zones.
  const test::TempFolder folder;
  std::filesystem::create_directory(folder.path() / "b=1,c=2");
  const std::string file = folder.write("b=1,c=2/one.csv", "seconds,count\n0,8\n60,\n");
  EXPECT_THAT(zones_of("zone:a=" + file + ",d=" + file), ElementsAre("a = " + file, "d = " + file));
  EXPECT_EQ(named("zone:" + file).file, file);
  EXPECT_EQ(named("zone:/a=1/one.csv").file, "/a=1/one.csv");

  const auto map = [](const std::filesystem::path& path) { return "/data" / path.filename(); };
  EXPECT_EQ(map_trace("zone:a=x/one.csv,column=us,b=spot:seed=1,c=two.csv", map),
            "zone:a=/data/one.csv,column=us,b=spot:seed=1,c=/data/two.csv");
  EXPECT_EQ(map_trace("zone:x/one.csv,zone=us", map), "zone:/data/one.csv,zone=us");
  EXPECT_THAT(files_of(named("zone:a=one.csv,b=spot,c=two.csv")),
              ElementsAre("one.csv", "two.csv"));

  const auto error = [](const std::string& text) { return error_of([&] { return named(text); }); };
  constexpr const char* kAccepted = " has no devices over time; accepted: a file or a generator";
  EXPECT_EQ(error("zone:a=32"), std::string("zone a: '32'") + kAccepted);
  EXPECT_EQ(error("zone:a=spot:most=8,sede=1"), std::string("zone sede: '1'") + kAccepted);
  EXPECT_EQ(error("zone:a=zone:b=spot"), std::string("zone a: 'zone:b=spot'") + kAccepted);
  EXPECT_THAT(error("zone:a=spot:sede=1"), HasSubstr("did you mean 'seed'?"));
  EXPECT_EQ(error("zone:zones.csv,column=us"),
            "zone:zones.csv,column=us: one column is one zone; accepted: FILE or FILE,zone=TEXT");
}

TEST(TraceSource, ReadsZones) {
  const test::TempFolder folder;
  const std::string one = folder.write("one.csv", "time,us-a,us-b,eu-a\n0,2,4,1\n60,3,1,9\n");
  const auto loaded_zones = [](const std::string& text) {
    return std::get<Zones>(load_steps(text, TraceEnd::hold, "--trace: "));
  };
  const Zones columns = loaded_zones("zone:" + one + ",zone=us");
  ASSERT_EQ(columns.all().size(), 2U);
  EXPECT_EQ(columns.all()[1].name, "us-b");
  EXPECT_EQ(columns.all()[1].availability.at(60), 1);
  EXPECT_EQ(columns.end(), TraceEnd::hold);
  const Zones named = loaded_zones("zone:a=" + one + ",column=eu-a,b=constant:devices=5");
  EXPECT_EQ(named.all()[0].availability.at(60), 9);
  EXPECT_EQ(named.all()[1].availability.at(60), 5);
  EXPECT_EQ(named.length(), 24 * 3600);
  EXPECT_THAT(error_loading("zone:" + one),
              HasSubstr("moves between zones in modelled time; accepted: with --clock"));
  const std::string steps = folder.write("steps.csv", "step,batchsize\n0,32\n");
  EXPECT_THAT(error_of([&] { return loaded_zones("zone:a=" + steps); }),
              HasSubstr("is a trace of steps; accepted: devices over time"));
  EXPECT_THAT(error_of([&] { return parse_trace_file("zone:a=one.csv"); }),
              HasSubstr("zones, where the devices of one are needed; accepted: FILE"));
}

std::vector<std::string> notes_on(const std::string& trace) {
  RunConfiguration run;
  run.trace = trace;
  run.clock = Clock::modelled;
  return reading_notes(run);
}

TEST(TraceSource, SaysWhatCountsAndWhenZonesBegin) {
  const test::TempFolder folder;
  const std::string several =
      folder.write("several.csv", "time,us-a,us-b,eu-a\n0,2,4,1\n60,3,1,9\n");
  const std::string early = folder.write("early.csv", "time,n\n1700000000,2\n1700000060,3\n");
  const std::string late = folder.write("late.csv", "time,n\n1700003600,2\n1700003660,3\n");
  const std::string own = folder.write("own.csv", "time,n\n0,2\n60,3\n");
  EXPECT_THAT(notes_on(several + ",zone=us"), ElementsAre("the devices are those of us-a, us-b"));
  EXPECT_THAT(notes_on(several + ",column=us-b"), ElementsAre("the devices are those of us-b"));
  EXPECT_THAT(notes_on("zone:" + several + ",zone=us"), ElementsAre("the zones are us-a, us-b"));
  EXPECT_THAT(notes_on("zone:a=" + early + ",b=" + late),
              ElementsAre("zone b: its first sample is 1 h after the beginning; until then it "
                          "has no devices"));
  EXPECT_THAT(notes_on("zone:a=" + early + ",b=" + own + ",c=spot"),
              ElementsAre("the times of zone b are relative, so it begins at the beginning"));
  EXPECT_THAT(notes_on("zone:a=" + own + ",b=" + several + ",zone=us"),
              ElementsAre("zone b: the devices are those of us-a, us-b",
                          "the times of zones a, b are relative, so they begin at the "
                          "beginning"));
  EXPECT_THAT(notes_on(own), IsEmpty());
  EXPECT_THAT(notes_on("spot"), IsEmpty());
}

TEST(TraceSource, RejectsNumbersThatAreNoBatchSize) {
  const std::string accepted =
      "; accepted: a whole number from 1 to 1099511627776, a file, a generator or elastic";
  EXPECT_EQ(error_loading("0"), "'0' is out of range" + accepted);
  EXPECT_EQ(error_loading("-32"), "'-32' is out of range" + accepted);
  EXPECT_EQ(error_loading("32.5"), "'32.5' is not a whole number" + accepted);
}

TEST(TraceSource, RejectsWhatLeadsNowhere) {
  const std::string accepted =
      "accepted: a file with the header 'step,batchsize[,cores]' or of availability "
      "(docs/traces.md), a batch size, elastic or a generator (rubato list generators)";
  EXPECT_EQ(error_loading("elastik"),
            "--trace: no such file as 'elastik'; did you mean 'elastic'? " + accepted);
  EXPECT_THAT(error_loading("spott:seed=1"), HasSubstr("did you mean 'spot'? "));
  EXPECT_EQ(error_loading("none.csv"), "--trace: no such file as 'none.csv'; " + accepted);
  EXPECT_EQ(error_loading(""), "--trace: no such file as ''; " + accepted);
}

TEST(TraceSource, MakesStepsOfAvailability) {
  const test::TempFolder folder;
  const std::string file = folder.write("a.csv", ",Time,GPUs\n0,7,8\n1,67,3\n2,127,0\n");
  EXPECT_EQ(loaded(file).steps(), (std::vector<TraceStep>{{256, 8}, {96, 3}}));
  EXPECT_EQ(loaded(file).end(), TraceEnd::error);
  EXPECT_EQ(loaded(file, TraceEnd::cycle).end(), TraceEnd::cycle);
  EXPECT_EQ(loaded(file, {}, "weak:quantum=2,samples-per-device=48").steps(),
            (std::vector<TraceStep>{{384, 8}, {96, 2}}));
  RunConfiguration run;
  run.trace = file;
  run.minibatch = 8;
  EXPECT_EQ(load_trace(run).steps().front().batch_size, 64) << "a minibatch for each device";
}

TEST(TraceSource, MakesStepsOfAGenerator) {
  const Trace trace = loaded("steps:devices=2/4,seconds=60", TraceEnd::hold,
                             "strong:batch=128,seconds-per-step=30");
  EXPECT_EQ(trace.steps(), (std::vector<TraceStep>{{128, 2}, {128, 2}, {128, 4}, {128, 4}}));
  EXPECT_EQ(trace.source(), "steps:devices=2/4,seconds=60");
  EXPECT_EQ(trace.end(), TraceEnd::hold);
  EXPECT_EQ(named("steps:devices=2/4").file, std::nullopt);
  EXPECT_EQ(named("./steps").file, "./steps");
  EXPECT_FALSE(named("steps").is_built_in());
  EXPECT_THAT(error_loading("steps:device=2"), StartsWith("unknown argument of steps 'device'"));
}

// A number at the end of a file counts where it is held, and nowhere else.
TEST(TraceSource, CountsTheCoresThatThereAre) {
  const test::TempFolder folder;
  RunConfiguration run;
  run.trace = folder.write("a.csv", "seconds,count\n0,4\n60,2\n120,16\n120,\n").string();
  run.clock = Clock::modelled;
  run.on_trace_end = TraceEnd::stop;
  EXPECT_EQ(cores_of(load_run_steps(run), run).most, 4);
  run.on_trace_end = TraceEnd::hold;
  EXPECT_EQ(cores_of(load_run_steps(run), run).most, 16);
  run.availability = "weak:max-cores=2";
  EXPECT_EQ(scaling_of(load_run_steps(run), run), "cores scaled by 2/4 to fit max-cores=2");
  run.clock = Clock::real;
  EXPECT_EQ(scaling_of(load_run_steps(run), run), "cores scaled by 2/4 to fit max-cores=2");
}

TEST(TraceSource, RefusesAPolicyThatWouldDoNothing) {
  const test::TempFolder folder;
  const std::string file = folder.write("t.csv", "step,batchsize\n0,32\n");
  for (const std::string& trace : {std::string("elastic"), std::string("128"), file}) {
    EXPECT_THAT(error_loading(trace, "weak"), StartsWith("--availability: ")) << trace;
  }
}

}  // namespace
}  // namespace rubato
