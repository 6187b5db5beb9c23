// What a page says of runs, and which charts it has.

#include "runs/page/runs/runs_page.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "runs/page/runs/run_charts.hpp"

namespace rubato::page {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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
                        "accuracy 87.50 % after 10 steps and 1280 samples. Training came to its "
                        "end as planned."));
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

TEST(RunsPage, NamesTheBestOfSeveralAndWhatTheyHaveInCommon) {
  std::vector<ThinnedRun> runs{run_of("one", 0.5), run_of("two", 0.75)};
  runs[1].options["rule"] = "<b>";
  const std::string answer = document_of_runs(runs).answer;
  EXPECT_THAT(answer, HasSubstr("The highest final test accuracy is 75.00 %, of two."));
  EXPECT_THAT(answer, HasSubstr("The same in all: model softmax, data digits, trace 128."));
  EXPECT_THAT(answer, HasSubstr("<td>&lt;b&gt;</td>"));
  EXPECT_THAT(answer, Not(HasSubstr("modelled hours")));
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

TEST(RunsPage, ShowsSharesInPercentAndUnitsOfTheSchema) {
  const std::vector<ThinnedRun> runs{run_of("one", 0.5)};
  const nlohmann::ordered_json charts = charts_of(runs);
  EXPECT_EQ(charts["runs"][0]["epochs"]["numbers"]["test_accuracy"].dump(), "[50]");
  EXPECT_EQ(charts["sections"][0]["figures"][1]["unit"], "%");
  EXPECT_EQ(charts["sections"][1]["figures"][0]["unit"], "samples");
  EXPECT_THAT(std::string(charts["sections"][0]["figures"][1]["help"]), HasSubstr("test set"));
}

}  // namespace
}  // namespace rubato::page
