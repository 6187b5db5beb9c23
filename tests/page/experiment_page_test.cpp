// The page of an experiment says what its answer says.

#include "runs/page/experiment_page.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "experiment/answers.hpp"

namespace rubato::page {
namespace {

const Answer& three_rules() {
  static const Answer answer = test::answer_to({{"base", {0.90, 0.91, 0.92}, true},
                                                {"linear", {0.901, 0.912, 0.921}},
                                                {"constant", {0.70, 0.72, 0.71}},
                                                {"root", {0.7, std::nullopt, 0.7}}});
  return answer;
}

TEST(ExperimentCharts, HaveTheIntervalsAndVerdictsOfTheAnswer) {
  const nlohmann::ordered_json charts = charts_of(three_rules());
  const auto& section = charts["sections"][0];
  EXPECT_EQ(section["title"], "Results with their intervals");
  const auto& values = section["figures"][0];
  ASSERT_EQ(values["rows"].size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const Answer::Cell& cell = three_rules().cells[i];
    EXPECT_EQ(values["rows"][i]["label"], cell.labels[1]);
    EXPECT_EQ(values["rows"][i]["verdict"], cell.rank ? name_of(*cell.rank) : "-");
    EXPECT_EQ(values["rows"][i].contains("mean"), cell.value.has_value());
  }
  EXPECT_NEAR(values["rows"][0]["half"], three_rules().cells[0].value->half_width.value(), 1e-3);
  EXPECT_EQ(values["rows"][0]["points"].dump(), "[90,91,92]");
  EXPECT_EQ(values["rows"][3]["verdict"], "lost");
  EXPECT_EQ(values["rows"][3]["text"], "1 of 3 diverged");

  const auto& differences = section["figures"][1];
  EXPECT_EQ(differences["title"], "Difference to the baseline");
  ASSERT_EQ(differences["rows"].size(), 2U);
  EXPECT_NEAR(differences["rows"][1]["mean"], -20, 0.1);
  EXPECT_EQ(differences["rows"][1]["verdict"], "worse");
  EXPECT_EQ(differences["rows"][0]["points"].dump(), "[0.1,0.2,0.1]") << "seed by seed";
  EXPECT_EQ(differences["rows"][0]["seeds"].dump(), "[1,2,3]");
  EXPECT_EQ(values["rows"][0]["baseline"], true);
  EXPECT_EQ(values["rows"][1]["baseline"], false);
  EXPECT_EQ(values["reference"], 91) << "what the baseline came to";
  EXPECT_EQ(values["rows"][3]["seeds"].dump(), "[1,3]") << "the second diverged";
}

// The curve of what was tuned, and those of the comparison at other rates.
TEST(ExperimentCharts, HaveScoresOverTheLearningRate) {
  Answer answer = three_rules();
  const auto point = [](double factor, const std::vector<double>& values, std::int64_t lost) {
    RateCurve::Point made{.factor = factor, .rate = 0.1 * factor, .values = values, .lost = lost};
    if (lost == 0) made.score = estimate(values);
    return made;
  };
  answer.rates = {{.cell = 1, .points = {point(0.5, {80, 82}, 0), point(1, {90}, 1)}}};
  TuningAnswer tuned{.option = "lr", .setting = "", .values = {}, .best = 1};
  tuned.values = {{.value = "0.032", .ends = {"diverged"}, .is_lost = true},
                  {.value = "0.1",
                   .estimate = estimate(std::vector<double>{88, 90}),
                   .ends = {"finished", "finished"},
                   .finals = {88, 90}}};
  const nlohmann::ordered_json charts = charts_of(answer, std::vector{tuned});
  const auto& section = charts["sections"][1];
  EXPECT_EQ(section["title"], "Learning rates");
  ASSERT_EQ(section["figures"].size(), 2U);
  const auto& tuning = section["figures"][0];
  EXPECT_EQ(tuning["type"], "rates");
  EXPECT_EQ(tuning["taken"], 0.1);
  EXPECT_EQ(tuning["rows"][0]["points"].dump(),
            R"([{"rate":0.032,"lost":1},{"rate":0.1,"lost":0,"mean":89,"low":88,"high":90}])");
  const auto& rates = section["figures"][1];
  EXPECT_EQ(rates["rows"][0]["label"], "linear");
  EXPECT_EQ(rates["rows"][0]["points"].dump(),
            R"([{"rate":0.05,"lost":0,"mean":81,"low":80,"high":82},{"rate":0.1,"lost":1}])");
  // Nothing that is no number has a place on an axis.
  tuned.values[0].value = "cosine";
  EXPECT_EQ(charts_of(answer, std::vector{tuned})["sections"][1]["figures"].size(), 1U);
}

// All cells in one figure, as far as all of their seeds go.
TEST(ExperimentCharts, HaveTheMeanCurvesOfAllCellsInOneFigure) {
  Answer answer = three_rules();
  answer.runs[4].result.curve.pop_back();
  const nlohmann::ordered_json charts = charts_of(answer);
  const auto& section = charts["sections"][1];
  EXPECT_EQ(section["title"], "Mean learning curves");
  ASSERT_EQ(section["figures"].size(), 1U);
  const auto& figure = section["figures"][0];
  EXPECT_EQ(figure["runs"].dump(), "[12,13,14,15]") << "behind those of the seeds";
  const auto& baseline = charts["runs"][12];
  EXPECT_EQ(baseline["name"], "base");
  EXPECT_EQ(baseline["baseline"], true);
  EXPECT_EQ(baseline["epochs"]["numbers"]["value"].dump(),
            R"({"low":[89,90],"mean":[90,91],"high":[91,92]})");
  EXPECT_EQ(baseline["epochs"]["axes"].dump(), R"({"steps":[11,20],"samples":[1000,2000]})");
  EXPECT_EQ(charts["runs"][13]["epochs"]["axes"]["steps"].size(), 1U) << "a seed has one epoch";
  EXPECT_EQ(charts["runs"][13]["color"], 1);
}

// A seed whose evaluation failed has no value there, and what comes behind it is a mean of others.
TEST(ExperimentCharts, EndMeanCurvesWhereASeedHasNoValue) {
  Answer answer = three_rules();
  answer.runs[4].result.curve[1].value.reset();
  const nlohmann::ordered_json charts = charts_of(answer);
  EXPECT_EQ(charts["runs"][13]["epochs"]["axes"]["steps"].dump(), "[11]");
  EXPECT_EQ(charts["runs"][12]["epochs"]["axes"]["steps"].size(), 2U);
}

// Each of two settings has a baseline of its own, and no line stands for both.
TEST(ExperimentCharts, HaveNoReferenceWhereThereAreSeveralBaselines) {
  Answer answer = test::answer_to({{"base", {0.90, 0.91}, true},
                                   {"linear", {0.901, 0.912}},
                                   {"base", {0.80, 0.81}, true},
                                   {"linear", {0.801, 0.812}}},
                                  50);
  answer.settings = {"minibatch 32", "minibatch 64"};
  answer.cells[2].setting = answer.cells[3].setting = 1;
  const nlohmann::ordered_json charts = charts_of(answer);
  for (const auto& figure : charts["sections"][0]["figures"]) {
    EXPECT_FALSE(figure.contains("reference")) << figure["title"];
    EXPECT_FALSE(figure.contains("references")) << figure["title"];
  }
}

TEST(ExperimentPage, DrawsCurvesAgainstWhatAllRunsHaveTheSameOf) {
  EXPECT_EQ(axis_of({.kind = "epochs"}), "samples");
  for (const char* kind : {"steps", "samples", "hours", "money"}) {
    EXPECT_EQ(axis_of({.kind = kind}), kind);
  }
  EXPECT_EQ(axis_of({.kind = "iterations"}), "steps");
}

TEST(ExperimentCharts, HaveTheAxesOfModelledTime) {
  Answer answer = three_rules();
  answer.runs[0].result.curve[0].point.hours = 0.5;
  answer.runs[0].result.curve[1].point.hours = 1.5;
  answer.runs[0].result.curve[0].point.money = 2.5;
  answer.runs[0].result.curve[1].point.money = 7;
  EXPECT_EQ(charts_of(answer)["runs"][0]["epochs"]["axes"].dump(),
            R"({"steps":[10,20],"samples":[1000,2000],"hours":[0.5,1.5],"money":[2.5,7]})");
}

TEST(ExperimentCharts, HaveWhatEachSeedTookToReachTheTarget) {
  const auto costs_of = [](double target) {
    const nlohmann::ordered_json charts =
        charts_of(test::answer_to({{"base", {0.90, 0.91, 0.92}, true},
                                   {"slow", {0.90, 0.895, 0.5}},
                                   {"never", {0.1, 0.2, 0.1}}},
                                  target));
    for (const auto& figure : charts["sections"][0]["figures"]) {
      if (figure["title"] == "Cost to target") return figure;
    }
    return nlohmann::ordered_json();
  };
  const nlohmann::ordered_json costs = costs_of(89.5);
  ASSERT_EQ(costs["rows"].size(), 3U);
  EXPECT_THAT(std::string(costs["help"]), testing::HasSubstr("89.5 % test accuracy"));
  EXPECT_EQ(costs["rows"][0]["costs"]["steps"].dump(), "[20,11,12]");
  EXPECT_EQ(costs["rows"][0]["medians"]["steps"], 12);
  EXPECT_EQ(costs["rows"][0]["baseline"], true);
  EXPECT_EQ(costs["references"]["steps"], 12);
  EXPECT_EQ(costs["rows"][1]["text"], "2 of 3 reached it");
  EXPECT_EQ(costs["rows"][1]["seeds"].dump(), "[1,2]");
  EXPECT_EQ(costs["rows"][1]["costs"]["samples"].dump(), "[2000,2000]");
  EXPECT_FALSE(costs["rows"][1]["costs"].contains("hours"));
  EXPECT_TRUE(costs["rows"][2]["costs"].empty());
  EXPECT_TRUE(costs["rows"][2]["medians"].empty());
  EXPECT_TRUE(costs_of(99).is_null()) << "nobody reached it";
}

TEST(ExperimentCharts, HaveASmallFigureForEachCellWithTheBaselineBehindIt) {
  const nlohmann::ordered_json charts = charts_of(three_rules());
  const auto& figures = charts["sections"][2]["figures"];
  ASSERT_EQ(figures.size(), 4U);
  EXPECT_EQ(figures[0]["context"].dump(), "[]");
  EXPECT_EQ(figures[1]["context"].dump(), "[0,1,2]");
  EXPECT_EQ(figures[1]["runs"].dump(), "[3,4,5]");
  EXPECT_EQ(figures[1]["group"], "trace t");
  EXPECT_EQ(charts["runs"][0]["epochs"]["numbers"]["value"].dump(), "[89,90]");
  EXPECT_EQ(charts["runs"][0]["epochs"]["axes"].dump(),
            R"({"steps":[10,20],"samples":[1000,2000]})");
}

}  // namespace
}  // namespace rubato::page
