// What a page says of runs, and which charts it has.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "runs/page/page.hpp"
#include "runs/page/run_charts.hpp"
#include "support/matchers.hpp"

namespace rubato::page {
namespace {

ThinnedRun run_of(const std::string& name, double accuracy) {
  ThinnedRun run(name, 100);
  run.options = {{"model", "softmax"}, {"data", "digits"}, {"rule", "linear"}, {"trace", "128"}};
  for (int step = 1; step <= 10; ++step) {
    run.last[Axis::steps] = step;
    run.last[Axis::samples] = 128 * step;
    run.steps.begin_step(run.last);
    run.steps.add("loss", 1.0 / step);
    run.steps.add("batch", 128);
  }
  run.epochs.begin_step(run.last);
  run.epochs.add("test_accuracy", accuracy);
  run.summary = {{"final_test_accuracy", accuracy}, {"stopped", nullptr}, {"steps", 10}};
  return run;
}

std::vector<std::string> titles(const nlohmann::ordered_json& charts) {
  std::vector<std::string> titles;
  for (const auto& section : charts["sections"]) {
    for (const auto& figure : section["figures"]) titles.push_back(figure["title"]);
  }
  return titles;
}

TEST(RunsPage, BeginsWithTheResult) {
  const std::vector<ThinnedRun> runs{run_of("one", 0.875)};
  const Document document = document_of_runs(runs);
  EXPECT_THAT(document.answer,
              HasSubstr("Trained softmax on digits with the rule linear under the trace 128: test "
                        "accuracy 87.50 % after 10 steps and 1280 samples. Training was "
                        "completed as planned."));
  EXPECT_THAT(document.end, HasSubstr("rubato train --config one/config.toml"));
}

TEST(RunsPage, SaysHowARunEnded) {
  std::vector<ThinnedRun> runs{run_of("one", 0.875)};
  runs[0].summary["stopped"] = "the trace ended";
  EXPECT_THAT(document_of_runs(runs).answer, HasSubstr("It ended early: the trace ended."));
  runs[0].summary = nullptr;
  EXPECT_THAT(document_of_runs(runs).answer, HasSubstr("Its metrics reach step 10."));
  runs[0].add_mark({.kind = kDiverged, .step = 10});
  EXPECT_THAT(document_of_runs(runs).answer, HasSubstr("It diverged"));
}

// It ended where --samples said, as one does where its epochs end.
TEST(RunsPage, CallsARunCompleteThatUsedUpItsBudget) {
  const auto end_with = [](const nlohmann::json& end, const char* stopped) {
    std::vector<ThinnedRun> runs{run_of("one", 0.875)};
    runs[0].summary["stopped"] = stopped;
    if (!end.is_null()) runs[0].summary["end"] = end;
    return document_of_runs(runs).answer;
  };
  EXPECT_THAT(end_with("completed", "20000 samples reached"),
              HasSubstr("Training was completed as planned."));
  EXPECT_THAT(end_with("stopped", "20000 samples reached"), HasSubstr("It ended early: 20000 "));
  // Summaries of older programs have no end.
  EXPECT_THAT(end_with(nullptr, "2.5 hours of the clock reached"), HasSubstr("as planned."));
  EXPECT_THAT(end_with(nullptr, "3 of money reached"), HasSubstr("as planned."));
  EXPECT_THAT(end_with(nullptr, "the trace ended"), HasSubstr("It ended early"));
}

TEST(RunsPage, SaysWhatHappenedInAStepAndWhatAfterIt) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  runs[0].add_mark({.kind = kFault, .step = 16, .text = "core 1"});
  runs[0].add_mark({.kind = kCheckpoint, .step = 16});
  runs[0].add_mark({.kind = kRestart, .step = 17, .text = "2 times", .count = 2});
  const std::string end = document_of_runs(runs).end;
  EXPECT_THAT(end, HasSubstr(R"(<th scope="row">in step 16</th><td>core died</td>)"));
  EXPECT_THAT(end, HasSubstr(R"(<th scope="row">after step 16</th><td>checkpoint</td>)"));
  EXPECT_THAT(end, HasSubstr(R"(<th scope="row">in step 17</th><td>restart</td>)"));
  EXPECT_THAT(end, Not(HasSubstr("These are"))) << "all four are there";
  for (int i = 0; i < 500; ++i) runs[0].add_mark({.kind = kCheckpoint, .step = 18 + i});
  EXPECT_THAT(document_of_runs(runs).end, HasSubstr("These are 203 of 504."));
}

TEST(RunsPage, HasTheCommandThatRepeatsSteps) {
  ThinnedRun run = run_of("my run", 0.5);
  EXPECT_THAT(reproduction_of(run), Not(HasSubstr("Where its steps are")));
  run.past = {{"steps 1 to 20", "its origin"}};
  EXPECT_THAT(reproduction_of(run), AllOf(HasSubstr("Where its steps are"),
                                          HasSubstr("<dt>steps 1 to 20</dt><dd>its origin</dd>")));
  run.last[Axis::steps] = 48;
  EXPECT_THAT(reproduction_of(run),
              HasSubstr("<pre tabindex=\"0\">rubato replay &#39;my run&#39; --steps 29..48 "));
  // Around what happened, and first of all around what made it end.
  run.add_mark({.kind = kFewerCores, .step = 30});
  EXPECT_THAT(reproduction_of(run), HasSubstr(" --steps 21..40 "));
  run.add_mark({.kind = kDiverged, .step = 5});
  EXPECT_THAT(reproduction_of(run), HasSubstr(" --steps 1..15 "));
}

TEST(RunsPage, SaysHowManyHostsTrainedAndReproducesOnAsMany) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  EXPECT_THAT(reproduction_of(runs[0]), HasSubstr("rubato train --config one/config.toml"));
  runs[0].summary["hosts"] = 3;
  const Document document = document_of_runs(runs);
  EXPECT_THAT(document.answer, HasSubstr("<dt>hosts</dt><dd>3</dd>"));
  EXPECT_THAT(document.end, HasSubstr("rubato launch --hosts 3 -- train --config one/config.toml"));
  EXPECT_THAT(document.end, HasSubstr("gives the same weights, bit for bit."));
}

TEST(RunsPage, NamesTheBestOfSeveralAndWhatTheyHaveInCommon) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5), run_of("two", 0.75)};
  runs[1].options["rule"] = "<b>";
  const std::string answer = document_of_runs(runs).answer;
  EXPECT_THAT(answer, HasSubstr("The highest final test accuracy is 75.00 %, of two."));
  EXPECT_THAT(answer, HasSubstr("The same for all: model softmax, data digits, trace 128."));
  EXPECT_THAT(answer, HasSubstr("<td>&lt;b&gt;</td>"));
  EXPECT_THAT(answer, Not(HasSubstr("modelled hours")));
}

// A run without a summary has its best epoch somewhere in its metrics, of which several share a
// bucket.
TEST(RunsPage, KnowsTheBestEpochOfARunThatHasNotEnded) {
  ThinnedRun run("one", 2);
  for (const double accuracy : {0.5, 0.875, 0.25, 0.75, 0.625}) {
    run.last[Axis::steps] += 10;
    run.epochs.begin_step(run.last);
    run.epochs.add("test_accuracy", accuracy);
  }
  EXPECT_THAT(document_of_runs(std::vector{run}).answer,
              HasSubstr("<dt>best %</dt><dd>87.50</dd>"));
}

TEST(RunsPage, HasNoChartWithoutNumbers) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  EXPECT_THAT(titles(charts_of(runs)), ElementsAre("Loss", "Test accuracy", "Batch size"));
  runs[0].steps.add("decision.target", 3);
  runs[0].steps.add("noise_scale", 3);
  runs[0].times.compute = 1;
  runs[0].substeps.add({2, 1});
  EXPECT_THAT(titles(charts_of(runs)),
              ElementsAre("Loss", "Test accuracy", "Batch size", "Substeps of each core",
                          "Gradient noise scale", "Time of the threads", "Batch policy: target"));
}

// The value of a part of a figure's only bar; -1 where it has none.
double part_of(const nlohmann::ordered_json& charts, const std::string& title,
               const std::string& part) {
  for (const auto& section : charts["sections"]) {
    for (const auto& figure : section["figures"]) {
      if (figure["title"] != title) continue;
      for (const auto& one : figure["rows"][0]["parts"]) {
        if (one["name"] == part) return one["value"].get<double>();
      }
    }
  }
  return -1;
}

TEST(RunsPage, DividesModelledTime) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  runs[0].last[Axis::hours] = 10;
  runs[0].clock = {.idle_hours = 1, .lost_hours = 2, .restart_hours = 0.5, .restarts = 3};
  const nlohmann::ordered_json charts = charts_of(runs);
  EXPECT_EQ(part_of(charts, "Modelled time", "steps"), 6.5);
  EXPECT_EQ(part_of(charts, "Modelled time", "lost attempts"), 2);
  EXPECT_EQ(part_of(charts, "Modelled time", "restarts"), 0.5);
  EXPECT_EQ(part_of(charts, "Modelled time", "without devices"), 1);
}

TEST(RunsPage, DividesTimeOnThisMachine) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  runs[0].times = {.exchange = 3, .update = 1, .wall = 6, .test = 2};
  runs[0].summary["wall_seconds"] = 8.5;
  const nlohmann::ordered_json charts = charts_of(runs);
  EXPECT_EQ(part_of(charts, "Time on this machine", "gradients"), 2);
  EXPECT_EQ(part_of(charts, "Time on this machine", "exchange between hosts"), 3);
  EXPECT_EQ(part_of(charts, "Time on this machine", "update"), 1);
  EXPECT_EQ(part_of(charts, "Time on this machine", "evaluation"), 2);
  EXPECT_EQ(part_of(charts, "Time on this machine", "files and the rest"), 0.5);
}

// A damaged or strange file may have any number of names.
TEST(RunsPage, HasAtMostTwentyFourFiguresOfEachKindOfOwnNames) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  for (int i = 10; i < 40; ++i) {
    runs[0].steps.add(fmt::format("metrics.m{}", i), i);
    runs[0].epochs.add(fmt::format("metrics.m{}", i), i);
  }
  const std::vector<std::string> all = titles(charts_of(runs));
  const auto of_kind = [&](const std::string& prefix) {
    return std::ranges::count_if(
        all, [&](const std::string& title) { return title.starts_with(prefix); });
  };
  EXPECT_EQ(of_kind("Own metric: "), 24);
  EXPECT_EQ(of_kind("Own metric of epochs: "), 24);
}

// With one curve for each run, a color and a dash are those of the run.
TEST(RunsPage, GivesEachCurveOfSeveralRunsAFigure) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  runs[0].epochs.add("test_loss", 0.5);
  EXPECT_EQ(charts_of(runs)["sections"][0]["figures"][0]["curves"].size(), 2U);
  runs.push_back(run_of("two", 0.5));
  EXPECT_THAT(titles(charts_of(runs)), ElementsAre("Loss: training, each step", "Loss: test",
                                                   "Test accuracy", "Batch size"));
  const auto charts = charts_of(runs);
  for (const auto& section : charts["sections"]) {
    for (const auto& figure : section["figures"]) EXPECT_EQ(figure["curves"].size(), 1U);
  }
}

TEST(RunsPage, BeginsAgainstTheBudgetThatAllRunsHave) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5), run_of("two", 0.5)};
  EXPECT_EQ(charts_of(runs)["axis"], "steps");
  runs[0].options["hours"] = "2";
  EXPECT_EQ(charts_of(runs)["axis"], "steps");
  runs[1].options["hours"] = "2";
  EXPECT_EQ(charts_of(runs)["axis"], "hours");
  EXPECT_EQ(charts_of(runs)["axes"][0]["whole"], true);
  EXPECT_EQ(charts_of(runs)["axes"][3]["whole"], false);
}

TEST(RunsPage, ShowsSharesInPercentAndUnitsOfTheSchema) {
  const std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  const nlohmann::ordered_json charts = charts_of(runs);
  EXPECT_EQ(charts["runs"][0]["epochs"]["numbers"]["test_accuracy"].dump(), "[50]");
  EXPECT_EQ(charts["sections"][0]["figures"][1]["unit"], "%");
  EXPECT_EQ(charts["sections"][1]["figures"][0]["unit"], "samples");
  EXPECT_EQ(charts["sections"][1]["figures"][0]["whole"], true);
  EXPECT_EQ(charts["sections"][0]["figures"][1]["whole"], false);
  EXPECT_THAT(std::string(charts["sections"][0]["figures"][1]["help"]), HasSubstr("test set"));
}

}  // namespace
}  // namespace rubato::page
