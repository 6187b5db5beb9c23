#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/steps/availability.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato {
namespace {

using Changes = std::vector<AvailabilityChange>;

Availability imported(std::string_view text, std::optional<AvailabilityFormat> format = {}) {
  return parse_availability(text, "a.csv", format);
}

std::string error_importing(std::string_view text, std::optional<AvailabilityFormat> format = {}) {
  return error_of([&] { return imported(text, format); });
}

constexpr std::string_view kSampleText = ",Time,GPUs\n0,1000.5,8\n1,1063.5,8\n2,1126.5,0\n";
constexpr std::string_view kEventText = "0,add,a\n0,add,b\n1500,remove,a\n3000,add,c\n";
TEST(Importers, ReadPrices) {
  const auto parse = [](const std::string& text) { return parse_availability(text, "priced.csv"); };
  const std::string text = "seconds,count,price\n0,8,0.5\n60,4,\n90,4,2\n120,,\n";
  const Availability of = parse(text);
  EXPECT_EQ(of.prices(), (std::vector<PriceChange>{{0, 0.5}, {90, 2}}));
  EXPECT_EQ(of.price_at(89), 0.5);
  EXPECT_EQ(of.next_price(0), 90);
  EXPECT_EQ(of.price_at(120), std::nullopt);
  std::ostringstream out;
  of.write_csv(out);
  EXPECT_EQ(parse(out.str()).prices(), of.prices());
  EXPECT_EQ(parse(out.str()).changes(), of.changes());
  EXPECT_THAT(error_of([&] { parse("seconds,count,price\n0,8,\n60,4,1\n120,,\n"); }),
              HasSubstr("priced.csv:3: a price, which the first row has not"));
  EXPECT_THAT(error_of([&] { parse("seconds,count,price\n0,8,-1\n120,,\n"); }),
              HasSubstr("priced.csv:2: the price '-1' of a device for an hour"));
  EXPECT_THAT(error_of([&] { parse("seconds,count,price,Price\n0,8,1,2\n120,,,\n"); }),
              HasSubstr("priced.csv:1: 2 columns are prices; accepted: one column 'price'"));
}

TEST(Availabilities, ContinueTheirPrices) {
  const auto priced = [](TraceEnd end) {
    return Availability({{0, 1}}, 100, "priced", end, {}, {{0, 1}, {40, 2}});
  };
  EXPECT_EQ(priced(TraceEnd::cycle).price_at(139), 1);
  EXPECT_EQ(priced(TraceEnd::cycle).price_at(140), 2);
  EXPECT_EQ(priced(TraceEnd::cycle).next_price(40), 100);
  EXPECT_EQ(priced(TraceEnd::cycle).next_price(110), 140);
  EXPECT_EQ(priced(TraceEnd::hold).price_at(1e6), 2);
  EXPECT_EQ(priced(TraceEnd::hold).next_price(40), std::nullopt);
  EXPECT_EQ(priced(TraceEnd::stop).price_at(100), std::nullopt);
}

TEST(Importers, ReadSamples) {
  const Availability availability = imported(kSampleText);
  EXPECT_EQ(availability.changes(), (Changes{{0, 8}, {126, 0}}));
  EXPECT_EQ(availability.length(), 189);
  EXPECT_EQ(availability.sample_gap(), 63);
  EXPECT_EQ(availability.source(), "a.csv");
}

TEST(Importers, ReadSamplesThatAreWrittenOtherwise) {
  for (const std::string_view text :
       {"seconds,count\n0,8\n63,8\n126,0\n189,\n",
        "\xEF\xBB\xBFSeconds;Devices\r\n0;8\r\n126; \"0\"\r\n189;\r\n;\r\n",
        "timestamp\tindex\tcores\n10\tx\t8.0\n136\t\t0\n199\t\t\n",
        "seconds,count\r0,8\r126,0\r189,\r"}) {
    const Availability availability = imported(text);
    EXPECT_EQ(availability.changes(), (Changes{{0, 8}, {126, 0}})) << text;
    EXPECT_EQ(availability.length(), 189) << text;
  }
}

TEST(Importers, GiveTheLastSampleTheTimeOfTheOneBefore) {
  const Availability irregular = imported("seconds,count\n0,8\n10,4\n30,2\n");
  EXPECT_EQ(irregular.length(), 50);
  EXPECT_EQ(irregular.sample_gap(), std::nullopt);
  EXPECT_EQ(imported("seconds,count\n0,8\n10,4\n30,2\n31,\n").length(), 31);
  EXPECT_EQ(imported("seconds,count\n0,8\n10,\n").sample_gap(), std::nullopt);
}

TEST(Importers, ReadEvents) {
  const Availability availability = imported(kEventText);
  EXPECT_EQ(availability.changes(), (Changes{{0, 2}, {1.5, 1}, {3, 2}}));
  EXPECT_EQ(availability.length(), 3);
  EXPECT_EQ(imported("500,add,a\n1000,remove,a").changes(), (Changes{{0, 0}, {0.5, 1}, {1, 0}}))
      << "nothing is there before the first event";
}

// With the wrong format given, the importer says what it wants.
TEST(Importers, ReadTheFormatThatIsGiven) {
  using Format = AvailabilityFormat;
  EXPECT_EQ(imported(kEventText, Format::events).length(), 3);
  EXPECT_THAT(error_importing(kSampleText, Format::events), StartsWith("a.csv:1: the time '' is"));
  EXPECT_THAT(error_importing(kEventText, Format::samples), HasSubstr("is not the header"));
  EXPECT_THAT(error_importing("step,batchsize\n0,8\n", Format::samples),
              HasSubstr("is not the header"));
}

TEST(Importers, RefuseWhatTheyDoNotKnow) {
  for (const std::string_view text : {"what,is,this\n1,2,3\n", "0,8\n60,4\n", "hello",
                                      "seconds,time,count\n0,0,1\n", "seconds\n0\n"}) {
    EXPECT_THAT(error_importing(text),
                HasSubstr("is not the header of an availability; accepted: "))
        << text;
  }
  for (const std::string_view text : {"", "\n\n", "\xEF\xBB\xBF", " \n0,8\n"}) {
    EXPECT_THAT(error_importing(text), StartsWith("a.csv: the file is empty")) << text;
  }
  EXPECT_THAT(error_importing("step,batchsize\n0,32\n"), StartsWith("a.csv:1: this is a trace"));
}

// pandas writes times of its own in milliseconds.
TEST(Importers, HintAtMilliseconds) {
  EXPECT_EQ(
      error_importing("Time,GPUs\n1652434464406,8\n1652434527406,8\n"),
      "a.csv:2: the time 1652434464406 is not a number of seconds, but looks like milliseconds; "
      "accepted: seconds, such as 1652434464.4 or 63");
  EXPECT_THAT(error_importing("Time,GPUs\n0,8\n400000000,8\n"),
              HasSubstr("(ten years), not milliseconds"));
}

TEST(Importers, TakeTheColumnsThatAreAskedFor) {
  const auto with = [](const DeviceColumns& columns) {
    return parse_availability(
        ",Time,V100_us-a,V100_us-b,A100_eu-a\n0,0,1,2,4\n1,60,8,0,2\n2,90,,,\n", "a.csv", {},
        TraceEnd::error, columns);
  };
  EXPECT_EQ(with({.column = "V100_us-b"}).changes(), (Changes{{0, 2}, {60, 0}}));
  EXPECT_EQ(with({.zone = "us-"}).changes(), (Changes{{0, 3}, {60, 8}}));
  EXPECT_EQ(with({.zone = "-a"}).changes(), (Changes{{0, 5}, {60, 10}}));
  EXPECT_EQ(with({.zone = "all"}).changes(), (Changes{{0, 7}, {60, 10}}));
  EXPECT_EQ(with({.zone = "all"}).length(), 90);
  const auto error_with = [&](const DeviceColumns& columns) {
    return error_of([&] { return with(columns); });
  };
  EXPECT_EQ(error_with({}),
            "a.csv:1: 3 columns may count devices: V100_us-a, V100_us-b, A100_eu-a; accepted: "
            "FILE,column=NAME for one, FILE,zone=TEXT for the sum of those with TEXT in their "
            "names, or FILE,zone=all");
  EXPECT_THAT(error_with({.column = "V100_us-c"}),
              HasSubstr("a.csv:1: unknown column 'V100_us-c'; did you mean 'V100_us-a'?"));
  EXPECT_THAT(error_with({.zone = "asia"}), HasSubstr("no column has 'asia' in its name"));
  const DeviceColumns all{.zone = "all"};
  const auto error_of_all = [&](std::string_view text) {
    return error_of([&] { return parse_availability(text, "a", {}, TraceEnd::error, all); });
  };
  EXPECT_THAT(error_of_all(kEventText), HasSubstr("a: a file of events has no columns"));
  EXPECT_THAT(error_of_all("time,a,b\n0,1,\n"), HasSubstr("a:2: the count '' is empty"));
  EXPECT_THAT(error_of_all("time,a,b\n0,1048576,1\n"),
              HasSubstr("a:2: 1048577 devices; accepted: a whole number from 0 to 1048576"));
}

// Whatever it looks like, both forms are named.
TEST(Importers, NameAllFormsWhereTheyKnowNone) {
  for (const std::string_view text : {"what,is,this\n1,2,3\n", "[1, 2, 3]", "{\"a\": {\"0\": 1}}",
                                      "[7", "[{\"a\": 0, \"b\": 4}]"}) {
    const std::string error = error_importing(text);
    for (const char* const form : {"'seconds,count'", "0,add,node1", "a script for JSON"}) {
      EXPECT_THAT(error, HasSubstr(form)) << text;
    }
  }
}

TEST(Importers, RefuseBadSamples) {
  const auto error_with = [](std::string_view row) {
    return error_importing(fmt::format("seconds,count\n0,8\n60,8\n{}\n", row));
  };
  EXPECT_EQ(error_with("30,8"),
            "a.csv:4: time goes backwards, by 30 s; accepted: rows in the order of their time");
  EXPECT_EQ(error_with("60,8"),
            "a.csv:4: a gap of 0 s to the row before; accepted: one row for each time");
  EXPECT_EQ(error_with("90,-1"),
            "a.csv:4: the count '-1' is negative; accepted: a whole number from 0 to 1048576");
  EXPECT_THAT(error_with("90,1.5"), HasSubstr("the count '1.5' is not a whole number"));
  EXPECT_THAT(error_with("90,x"), HasSubstr("the count 'x' is not a number"));
  EXPECT_THAT(error_with("90,1048577"), HasSubstr("is too large"));
  EXPECT_THAT(error_with("90"), StartsWith("a.csv:4: 1 field in '90'; accepted: 2"));
  EXPECT_THAT(error_with("90,1,2"), HasSubstr("3 fields"));
  EXPECT_THAT(error_with("90,\"1"), HasSubstr("a quote is not closed"));
  for (const std::string_view time : {"x", "", "nan", "inf", "1e300", "2022-05-13 09:34"}) {
    EXPECT_THAT(error_with(fmt::format("{},1", time)), HasSubstr("is not a number of seconds"));
  }
  EXPECT_THAT(error_with("315576001,1"),
              HasSubstr("accepted: seconds, up to 315576000 (ten years)"));
  EXPECT_THAT(error_with("315575999,1"), HasSubstr("it lasts 631151938 s"));
  EXPECT_THAT(error_with("\n90,1"), StartsWith("a.csv:5: there is a blank line before this row"));
  EXPECT_THAT(error_with("90,\n120,4"), StartsWith("a.csv:5: the row before has no count"));
  EXPECT_THAT(error_importing("seconds,count\n"), HasSubstr("no rows follow the header"));
  EXPECT_THAT(error_importing("seconds,count\n0,8\n"), HasSubstr("one row does not say how long"));
  EXPECT_THAT(error_importing("seconds,count\n0,\n"), HasSubstr("the first row has no count"));
  EXPECT_THAT(error_importing("seconds,count\n0,8\n0,\n"), HasSubstr("it lasts 0 s"));
}

TEST(Importers, RefuseBadEvents) {
  const auto error_with = [](std::string_view event) {
    return error_importing(fmt::format("0,add,a\n1000,add,b\n{}\n", event));
  };
  EXPECT_EQ(error_with("999,add,c"),
            "a.csv:3: time goes backwards, from 1000 to 999 ms; accepted: events in the order of "
            "their time");
  EXPECT_EQ(error_with("2000,pause,c"), "a.csv:3: unknown event 'pause'; accepted: add, remove");
  EXPECT_EQ(error_with("2000,remove,c"),
            "a.csv:3: 'c' is removed, but is not there; accepted: a node that was added and not "
            "removed");
  EXPECT_EQ(error_with("2000,add,a"),
            "a.csv:3: 'a' is added, but is there already; accepted: a node that is not there");
  EXPECT_THAT(error_with("2000,add"),
              HasSubstr("'2000,add' is not an event; accepted: milliseconds,"));
  EXPECT_THAT(error_with("2000,add,c,d"), HasSubstr("is not an event"));
  EXPECT_THAT(error_with("2000,add,"), HasSubstr("a name of 0 characters"));
  EXPECT_THAT(error_with("2000,add," + std::string(201, 'x')), HasSubstr("a name of 201"));
  EXPECT_THAT(error_with("2000.5,add,c"), HasSubstr("the time '2000.5' is not a whole number"));
  EXPECT_THAT(error_with("-1,add,c"), HasSubstr("the time '-1' is negative"));
  EXPECT_THAT(error_with("1652434464406,add,c"),
              HasSubstr("accepted: milliseconds from the start of the trace on, up to"));
  EXPECT_THAT(error_with("\n2000,add,c"), StartsWith("a.csv:4: there is a blank line"));
  EXPECT_THAT(error_importing("0,add,a\n0,add,b\n"), HasSubstr("it has no duration"));
  EXPECT_THAT(error_importing("\n", AvailabilityFormat::events), HasSubstr("the file is empty"));
}

TEST(Importers, RefuseALineWithoutEnd) {
  EXPECT_THAT(error_importing("0,add," + std::string(std::size_t{20} << 20, 'x')),
              HasSubstr("a.csv:1: the line has more than 16 MiB"));
}

class AvailabilityFile : public testing::Test {
 protected:
  const test::TempFolder folder_;
};

TEST_F(AvailabilityFile, IsReadAndNamed) {
  const std::string file = folder_.write("a.csv", kSampleText);
  EXPECT_EQ(read_availability(file).source(), file);
  EXPECT_EQ(read_availability(file, {}, TraceEnd::hold).at(1e6), 0);
  EXPECT_EQ(read_availability(file, AvailabilityFormat::samples).length(), 189);
  EXPECT_THAT(error_of([&] { return read_availability(folder_.path()); }),
              HasSubstr("it is a folder"));
  EXPECT_THAT(error_of([&] { return read_availability("/nowhere"); }), HasSubstr("no such file"));
}

TEST_F(AvailabilityFile, IsToldFromATrace) {
  const auto kind = [&](std::string_view text) {
    return read_trace_or_availability(folder_.write("t", text)).index();
  };
  EXPECT_EQ(kind("step,batchsize\n0,32\n"), 0U);
  EXPECT_EQ(kind("\xEF\xBB\xBF \"Step\";batchsize\n0;32\n"), 0U);
  for (const std::string_view text : {kSampleText, kEventText}) {
    EXPECT_EQ(kind(text), 1U) << text;
  }
  // What is neither could be either.
  EXPECT_THAT(error_of([&] { kind("0,32\n1,32\n"); }),
              AllOf(HasSubstr("t: it begins with '0,32', which is neither a trace nor an avail"),
                    HasSubstr("'step,batchsize,cores', or the header 'seconds,count'")));
  const std::string trace = folder_.write("t", "step,batchsize\n0,32\n");
  EXPECT_THAT(
      error_of([&] { return read_trace_or_availability(trace, TraceEnd::error, {.zone = "all"}); }),
      HasSubstr("t: a trace has no columns of devices"));
  for (const char* const empty : {"", "\n"}) {
    EXPECT_THAT(error_of([&] { kind(empty); }),
                AllOf(HasSubstr("t: the file is empty; accepted: the header 'step,batchsize'"),
                      HasSubstr("'seconds,count'"), HasSubstr("0,add,node1")));
  }
}

// Lines across the pieces in which a file is read.
TEST_F(AvailabilityFile, MayBeLong) {
  std::string text = "0,add,first\n";
  constexpr int kEvents = 200'000;
  for (int i = 1; i <= kEvents; ++i) {
    fmt::format_to(std::back_inserter(text), "{},{},node{}\n", i, i % 2 == 1 ? "add" : "remove",
                   (i - 1) / 2);
  }
  const Availability availability = read_availability(folder_.write("events.csv", text));
  EXPECT_EQ(availability.changes().size(), kEvents + 1U);
  EXPECT_EQ(availability.length(), kEvents / 1000.0);
  EXPECT_EQ(availability.at(availability.length() - 0.001), 2);
}

std::optional<Availability> shared_availability(const std::string& name,
                                                const DeviceColumns& columns = {}) {
  const std::filesystem::path path = std::filesystem::path(RUBATO_SHARED_DIR "/data/traces") / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_availability(path, {}, TraceEnd::error, columns);
}

struct Measured {
  const char* name = "";
  double length = 0;
  std::optional<double> gap{};
  std::int64_t first = 0;
  std::int64_t most = 0;
  std::int64_t last = 0;
};

// What awk says of these files.
TEST(ImportersReference, ReadMeasuredAvailability) {
  for (const Measured& measured :
       {Measured{"a100_trace.csv", 215 * 63, 63, 56, 56, 0},
        Measured{"tpuv28_trace.csv", 1934 * 30, 30, 88, 120, 112},
        Measured{"bamboo_p3_events.csv", 40920, {}, 18, 32, 10},
        Measured{"oobleck_scaled_gcp_events.csv", 38760, {}, 0, 30, 17}}) {
    const auto availability = shared_availability(measured.name);
    if (!availability) GTEST_SKIP() << measured.name << " is not there";
    EXPECT_EQ(availability->length(), measured.length) << measured.name;
    EXPECT_EQ(availability->sample_gap(), measured.gap) << measured.name;
    EXPECT_EQ(availability->at(0), measured.first) << measured.name;
    EXPECT_EQ(summary_of(*availability).most, measured.most) << measured.name;
    EXPECT_EQ(availability->changes().back().devices, measured.last) << measured.name;
  }
}

// By numpy: the devices of each change times how long it lasts.
TEST(ImportersReference, HaveTheMeansThatNumpyGives) {
  const auto events = shared_availability("oobleck_scaled_gcp_events.csv");
  if (!events) GTEST_SKIP() << "it is not there";
  EXPECT_NEAR(summary_of(*events).mean, 21.9598, 5e-5);
  EXPECT_EQ(summary_of(*events).changes, 74);
}

TEST(ImportersReference, ReadTheColumnsOfZones) {
  const char* const file = "sailor_gpus_of_zones.csv";
  if (!std::filesystem::exists(std::string(RUBATO_SHARED_DIR "/data/traces/") + file)) {
    GTEST_SKIP() << file << " is not there";
  }
  const auto devices = [&](const DeviceColumns& columns) {
    std::vector<std::int64_t> counts;
    const Availability availability = *shared_availability(file, columns);
    for (const AvailabilityChange& change : availability.changes())
      counts.push_back(change.devices);
    return counts;
  };
  EXPECT_THAT(devices({.column = "A100-40_us-west1-b"}), ElementsAre(32, 80, 128));
  EXPECT_THAT(devices({.zone = "us-central1"}), ElementsAre(4 * 32, 4 * 80, 4 * 128));
  EXPECT_THAT(devices({.zone = "all"}), ElementsAre(5 * 32, 5 * 80, 5 * 128));
  const Zones zones = read_zones(std::string(RUBATO_SHARED_DIR "/data/traces/") + file);
  ASSERT_EQ(zones.all().size(), 5U);
  for (const auto& [name, availability] : zones.all()) {
    EXPECT_THAT(name, HasSubstr("A100-40_us-"));
    EXPECT_EQ(availability.changes(), shared_availability(file, {.column = name})->changes());
  }
}

// The second field of an event says what happens; an empty one says nothing.
TEST(Importers, TakeNoEmptyFieldForAnEvent) {
  EXPECT_THAT(error_importing("0,,a\n60,,b\n"),
              HasSubstr("is not the header of an availability; accepted: "));
}

TEST(Importers, TakeAWholeNameBeforeAPartOfOne) {
  const auto columns_with = [](const std::string& header, const std::string& zone) {
    const std::string text = "time," + header + "\n0,1,2,4\n60,1,2,4\n";
    return parse_availability(text, "a.csv", {}, TraceEnd::error, {.zone = zone}).origin().columns;
  };
  using Names = std::vector<std::string>;
  const std::string regions = "A_europe-west1-b,A_europe-west10-a,A_europe-west12-a";
  EXPECT_EQ(columns_with(regions, "europe-west1"), (Names{"A_europe-west1-b"}));
  EXPECT_EQ(columns_with(regions, "europe-west"),
            (Names{"A_europe-west1-b", "A_europe-west10-a", "A_europe-west12-a"}));
  EXPECT_EQ(columns_with(regions, "-a"), (Names{"A_europe-west10-a", "A_europe-west12-a"}));
  EXPECT_EQ(columns_with("us,us-a,australia", "us"), (Names{"us"}));
  EXPECT_EQ(columns_with("east-us,us-a,australia", "us"), (Names{"east-us", "us-a"}));
  EXPECT_EQ(columns_with("x,y,australia", "us"), (Names{"australia"}));
  EXPECT_EQ(columns_with("x\u00e4us,y,eus", "us"), (Names{"x\u00e4us", "eus"}))
      << "\u00e4 is a letter";
  // Nothing is to be said where there is one column.
  EXPECT_TRUE(imported("time,n\n0,1\n60,2\n").origin().columns.empty());
}

TEST(Importers, KnowWhenTheirFilesBegin) {
  EXPECT_EQ(imported(kSampleText).origin().start, 1000.5);
  EXPECT_EQ(imported(kEventText).origin().start, 0);
  EXPECT_EQ(generate_availability("constant").origin().start, std::nullopt);
}

TEST(Importers, NameTheHeaderOfEvents) {
  for (const char* const header :
       {"time,event,node", "milliseconds,event,node", "Timestamp;event"}) {
    const std::string text = std::string(header) + "\n0,add,a\n60000,remove,a\n";
    const std::string said =
        "1: events have no header, as their times are always milliseconds; accepted: "
        "milliseconds,add|remove,node";
    EXPECT_EQ(error_importing(text), "a.csv:" + said) << header;
    const test::TempFolder folder;
    const std::string file = folder.write("e", text);
    EXPECT_EQ(error_of([&] { return read_trace_or_availability(file); }), file + ":" + said);
  }
}

}  // namespace
}  // namespace rubato
