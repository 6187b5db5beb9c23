// Parts of other pages: the head and the first charts, which need no script and restyle nothing.

#include "runs/page/part.hpp"

#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "experiment/answers.hpp"
#include "runs/page/drawn_charts.hpp"
#include "runs/page/experiment_page.hpp"
#include "runs/page/svg.hpp"
#include "support/matchers.hpp"
#include "support/temp_folder.hpp"

namespace rubato::page {
namespace {

// How often a text has another one in it.
int count_of(const std::string& what, const std::string& html) {
  int count = 0;
  for (std::size_t at = 0; (at = html.find(what, at)) != std::string::npos; ++at) ++count;
  return count;
}

RecordColumns records_of(int steps) {
  RecordColumns records;
  for (int step = 0; step < steps; ++step) {
    records.steps["step"].push_back(step);
    records.steps["epoch"].push_back(step / 10);
    records.steps["batch"].push_back(step % 2 == 0 ? 64 : 32);
    records.steps["cores"].push_back(step % 2 == 0 ? 2 : 1);
    records.steps["loss"].push_back(1 / (1.0 + step));
    records.steps["applied"].push_back(1);
    if (step % 10 != 9) continue;
    records.epochs["epoch"].push_back(step / 10);
    records.epochs["test_accuracy"].push_back(0.9);
  }
  return records;
}

ThinnedRun run_with(const RecordColumns& records) {
  ThinnedRun run("", kColumnsOfPart);
  run.options["model"] = "<b>";
  take_records(records, run);
  return run;
}

TEST(Part, HasStylesForItselfAlone) {
  const std::string html = part_of(run_with(records_of(40)));
  const std::size_t begin = html.find("<style>") + 7;
  const std::string styles = html.substr(begin, html.find("</style>") - begin);
  for (const char* outside : {"http", "url(", "@import", ":root", " body"}) {
    EXPECT_THAT(styles, Not(HasSubstr(outside)));
  }
  // Rules are for the part or nested in its rule.
  std::string outermost;
  int depth = 0;
  for (const char letter : styles) {
    if (letter == '}') --depth;
    if (letter == '{' && depth == 0) {
      EXPECT_EQ(count_of(".rubato-part.rubato-part", outermost), count_of(",", outermost) + 1)
          << outermost;
    }
    if (letter == '{') ++depth;
    if (depth == 0) outermost += letter;
    if (letter == '}') outermost.clear();
  }
  EXPECT_EQ(depth, 0);
  for (const char* tag : {"<script", "<link", "<img", "<b>", "id=", "href="}) {
    EXPECT_THAT(html, Not(HasSubstr(tag)));
  }
  EXPECT_THAT(styles, HasSubstr("--back: light-dark(#ffffff, #14171b);"));
  EXPECT_THAT(styles, HasSubstr("[data-jp-theme-light=false] .rubato-part"));
  EXPECT_EQ(count_of("<div", html), count_of("</div>", html));
}

TEST(Part, HasTwoChartsOfASectionAndStaysSmall) {
  const std::string html = part_of(run_with(records_of(100'000)));
  EXPECT_EQ(count_of("<svg", html), 4);
  for (const char* title : {"Loss", "Batch size", "Cores"}) {
    EXPECT_THAT(html, HasSubstr(fmt::format("<figcaption>{} ", title)));
  }
  EXPECT_LT(html.size(), 40'000U);
  EXPECT_THAT(html, HasSubstr("after 100000 steps and 4800000 samples"));
}

TEST(Part, IsThatOfTheFolderWithTheSameRecords) {
  RecordColumns records = records_of(20);
  records.faults = {{"step", {4}}, {"core", {1}}, {"substep", {0}}, {"cores_left", {1}}};
  const ThinnedRun in_memory = run_with(records);
  std::string lines;
  for (int step = 0; step < 20; ++step) {
    if (step == 4) {
      lines += R"({"kind":"fault","step":4,"core":1,"substep":0,"cores_left":1})"
               "\n";
    }
    lines += fmt::format(R"({{"kind":"step","step":{},"epoch":{},"batch":{},"cores":{},"loss":{}}})"
                         "\n",
                         step, step / 10, step % 2 == 0 ? 64 : 32, step % 2 == 0 ? 2 : 1,
                         1 / (1.0 + step));
    if (step % 10 == 9) {
      lines += fmt::format(R"({{"kind":"epoch","epoch":{},"test_accuracy":0.9}})"
                           "\n",
                           step / 10);
    }
  }
  const test::TempFolder folder;
  folder.write("metrics.jsonl", lines);
  folder.write("config.toml", "model = \"<b>\"\n");
  EXPECT_EQ(part_of_folder(folder.path().string()), part_of(in_memory));
  EXPECT_THAT(part_of(in_memory), HasSubstr("core died (1)"));
  EXPECT_THROW(static_cast<void>(part_of_folder((folder.path() / "none").string())), Error);
}

TEST(Part, OfARunThatWasResumedIsOverItsSteps) {
  RecordColumns records = records_of(10);
  for (double& step : records.steps["step"]) step += 500;
  ThinnedRun run = run_with(records);
  run.options["samples"] = "100000";
  EXPECT_THAT(part_of(run), HasSubstr("Loss against steps"));
  ThinnedRun whole = run_with(records_of(10));
  whole.options["samples"] = "100000";
  EXPECT_THAT(part_of(whole), HasSubstr("Loss against samples"));
}

TEST(Part, LeavesOutWhatIsNoNumber) {
  RecordColumns records = records_of(3);
  records.steps["loss"] = {1, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()};
  records.steps["lr"] = {1};
  const std::string html = part_of(run_with(records));
  EXPECT_THAT(html, HasSubstr("<figcaption>Loss"));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
  EXPECT_THAT(part_of(run_with({})), Not(HasSubstr("<svg")));
}

TEST(Part, ShowsTracesAndAvailabilities) {
  const Trace trace({{.batch_size = 64, .cores = 2}, {.batch_size = 32, .cores = 1}},
                    TraceEnd::cycle, "<t>");
  const std::string html = part_of(trace);
  EXPECT_THAT(html, HasSubstr("&lt;t&gt;: 2 steps of 32 to 64 samples, 48.0 on average; end: "
                              "cycle."));
  EXPECT_EQ(count_of("<svg", html), 2);
  EXPECT_EQ(count_of("<svg", part_of(Trace({{.batch_size = 64}}, TraceEnd::error, "one"))), 1);
  const Availability devices({{.seconds = 0, .devices = 4}, {.seconds = 1800, .devices = 2}}, 7200,
                             "two");
  EXPECT_THAT(part_of(devices), HasSubstr("two: 2 to 4 devices, 2.5 on average, over 2 hours, with "
                                          "1 change; end: error."));
  EXPECT_THAT(part_of(devices), HasSubstr("<figcaption>Devices "));
  EXPECT_THAT(part_of(devices), HasSubstr("Devices against modelled hours"));
  // Four devices for a quarter of the width, then two.
  EXPECT_THAT(
      part_of(devices),
      ContainsRegex("d=\"M[0-9.]+ 12.0 [0-9.]+ 12.0 [0-9.]+ 12.0 [0-9.]+ 94.0 446.0 94.0\""));
}

TEST(DrawnCharts, HaveTheIntervalsOfAnAnswer) {
  const Answer answer =
      test::answer_to({{"base", {0.90, 0.91, 0.92}, true}, {"linear", {0.901, 0.912, 0.921}}});
  const std::string html = drawn_charts(charts_of(answer), 9);
  EXPECT_THAT(html, HasSubstr("base (baseline)"));
  EXPECT_THAT(html, HasSubstr("Difference to the baseline"));
  EXPECT_THAT(html, HasSubstr("class=\"interval "));
  // Three seeds of two choices, three differences, and two samples of legends.
  EXPECT_EQ(count_of("class=\"seed ", html), 11);
  EXPECT_EQ(count_of("<svg", drawn_charts(charts_of(answer), 1)), 1);
}

TEST(DrawnCharts, LeaveOutSeedsThatAreNotFinite) {
  const Answer answer =
      test::answer_to({{"base", {0.90, 0.91, 0.92}, true}, {"linear", {0.901, 0.912, 0.921}}});
  Json charts = charts_of(answer);
  for (Json& section : charts["sections"]) {
    for (Json& figure : section["figures"]) {
      if (figure["type"] == "intervals") figure["rows"][0]["points"][0] = nullptr;
    }
  }
  EXPECT_EQ(count_of("class=\"seed ", drawn_charts(charts, 9)), 9);
}

TEST(Scale, HasTicksAtRoundNumbers) {
  EXPECT_THAT(linear_scale({.low = 0, .high = 97}, 5, true).ticks,
              ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(linear_scale({.low = 1, .high = 3}, 5, false, true).ticks, ElementsAre(1, 2, 3));
  const Scale constant = linear_scale({.low = 5, .high = 5}, 5, true);
  EXPECT_LT(constant.low, 5);
  EXPECT_GT(constant.high, 5);
  Scale log = log_scale({.low = 0.002, .high = 20});
  EXPECT_THAT(log.ticks, ElementsAre(0.01, 0.1, 1, 10));
  log.to = 100;
  EXPECT_NEAR(log(0.2), 50, 1e-9);
  EXPECT_EQ(log(-1), 0) << "a value without a logarithm is at the end";
  EXPECT_EQ(tick_text(12'000), "12k");
  EXPECT_EQ(tick_text(0.05), "0.05");
}

}  // namespace
}  // namespace rubato::page
