// The summary over all conditions: performance profiles, scores, ranks.

#include "runs/experiment/answer/all_conditions.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "experiment/answers.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::answer_to;

// The deviation of the baseline, which has a condition of its own, is 2 points.
std::vector<test::CellValues> two_traces() {
  return {{"constant", {0.90, 0.92, 0.94}, true, "128"},
          {"linear", {0.90, 0.80, 0.86}, false, "spot"},
          {"root", {0.91, 0.70, 0.86}, false, "spot"},
          {"linear", {0.95, std::nullopt, 0.86}, false, "saw"},
          {"root", {0.95, 0.90, 0.90}, false, "saw"}};
}

const AllConditions& all_of(const Answer& answer) {
  return answer.together.value();
}

TEST(AllConditions, AreThoseWithMoreThanABaseline) {
  const Answer answer = answer_to(two_traces());
  const AllConditions& all = all_of(answer);
  EXPECT_THAT(all.conditions, ElementsAre(1, 2));
  EXPECT_EQ(all.pairs, 6);
  ASSERT_EQ(all.choices.size(), 2U) << "no condition but the baseline's own has it";
  EXPECT_THAT(all.choices[0].labels, ElementsAre("linear"));
  EXPECT_THAT(all.choices[1].labels, ElementsAre("root"));
  EXPECT_EQ(all.choices[0].lost, 1);
  EXPECT_EQ(all.choices[1].lost, 0);
}

// It may differ from the cell in an option that no axis has.
TEST(AllConditions, HaveTheCellAndNotABaselineWithItsLabels) {
  std::vector<test::CellValues> cells = two_traces();
  cells.insert(cells.begin() + 1, {"linear", {0.5, 0.5, 0.5}, true, "spot"});
  const Answer answer = answer_to(cells);
  ASSERT_EQ(all_of(answer).choices.size(), 2U);
  EXPECT_EQ(all_of(answer).choices[0].behind.back(),
            all_of(answer_to(two_traces())).choices[0].behind.back());
}

TEST(AllConditions, AreNotSummarizedForOneConditionOrOneChoice) {
  std::vector<test::CellValues> cells = two_traces();
  cells.resize(3);
  EXPECT_FALSE(answer_to(cells).together);
  cells = two_traces();
  std::erase_if(cells, [](const auto& cell) { return cell.rule == "root"; });
  EXPECT_FALSE(answer_to(cells).together);
}

TEST(Profiles, HaveTheDistancesToTheBestOfEachPair) {
  const Answer answer = answer_to(two_traces());
  const AllConditions& all = all_of(answer);
  EXPECT_THAT(all.choices[0].behind,
              ElementsAre(0, 0, 0, DoubleNear(1, 1e-9), DoubleNear(4, 1e-9)));
  EXPECT_THAT(all.choices[1].behind, ElementsAre(0, 0, 0, 0, 0, DoubleNear(10, 1e-9)));
  EXPECT_EQ(all.share_within(all.choices[0], 0), 3.0 / 6);
  EXPECT_EQ(all.share_within(all.choices[0], 1), 4.0 / 6);
  EXPECT_EQ(all.share_within(all.choices[0], 100), 5.0 / 6) << "one is lost";
  EXPECT_EQ(all.share_within(all.choices[1], 9.9), 5.0 / 6);
  EXPECT_EQ(all.share_within(all.choices[1], 10), 1);
  EXPECT_THAT(all.grid(), ElementsAre(0, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10));
}

// A baseline that no condition has a choice of may be the best of a condition.
TEST(Profiles, HaveTheDistancesToABaselineThatIsTheBest) {
  std::vector<test::CellValues> cells = two_traces();
  cells.insert(cells.begin() + 1, {"constant", {0.99, 0.5, 0.5}, true, "spot"});
  const Answer answer = answer_to(cells);
  ASSERT_EQ(all_of(answer).choices.size(), 2U);
  EXPECT_THAT(all_of(answer).choices[1].behind,
              ElementsAre(0, 0, 0, 0, DoubleNear(8, 1e-9), DoubleNear(10, 1e-9)));
}

TEST(Profiles, HaveDecimalDistances) {
  // 100 * 0.14 - 100 * 0.13 is a little more than 1.
  const AllConditions all{.pairs = 1, .choices = {{.behind = {100 * 0.14 - 100 * 0.13}}}};
  ASSERT_GT(all.choices[0].behind[0], 1);
  EXPECT_EQ(all.share_within(all.choices[0], 1), 1);
  EXPECT_EQ(all.grid().back(), 1);
}

TEST(Profiles, HaveNoDistanceOfAnUnlearnedRun) {
  test::AnswerParts parts = test::answer_parts(two_traces());
  parts.results[8].end = ResultEnd::unlearned;  // root's 0.86 on spot
  parts.results[5].end = ResultEnd::unlearned;  // linear's
  const Answer answer = parts.answer();
  EXPECT_EQ(all_of(answer).choices[1].behind.size(), 5U);
  EXPECT_EQ(all_of(answer).choices[1].lost, 1);
  // The pair has no best, and counts.
  EXPECT_EQ(all_of(answer).pairs, 6);
}

TEST(Profiles, AreOfLossesToTheLeast) {
  test::AnswerParts parts = test::answer_parts(two_traces());
  parts.measure.is_accuracy = false;
  const Answer answer = parts.answer();
  EXPECT_THAT(all_of(answer).choices[1].behind,
              ElementsAre(0, 0, 0, 0, DoubleNear(0.01, 1e-9), DoubleNear(0.04, 1e-9)));
  EXPECT_THAT(all_of(answer).grid(), ElementsAre(0, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.007, 0.01,
                                                 0.015, 0.02, 0.03, 0.05, 0.07, 0.1));
}

TEST(Grid, IsZeroWhereAllAreTheBest) {
  EXPECT_THAT((AllConditions{.choices = {{.behind = {0, 0}}}}.grid()), ElementsAre(0));
  EXPECT_THAT(AllConditions().grid(), ElementsAre(0));
}

TEST(MeanRank, IsOverPairsWithLostRunsLast) {
  const Answer answer = answer_to(two_traces());
  // 2, 1, 1.5 and 1.5, 2, 2 of two.
  EXPECT_NEAR(all_of(answer).choices[0].mean_rank, 10.0 / 6, 1e-12);
  EXPECT_NEAR(all_of(answer).choices[1].mean_rank, 8.0 / 6, 1e-12);
}

TEST(Score, IsTheInterquartileMeanInDeviationsOfTheBaseline) {
  const Answer answer = answer_to(two_traces());
  const AllConditions& all = all_of(answer);
  EXPECT_THAT(all.units, ElementsAre(Optional(DoubleNear(2, 1e-9)), Optional(DoubleNear(2, 1e-9))));
  // Seed by seed: linear 0, -6, -4 and 2.5, lost, -4; root 0.5, -11, -4 and 2.5, -1, -2. One of six
  // is left out at each end.
  EXPECT_THAT(all.choices[0].score, Optional(DoubleNear((-6 - 4 - 4 + 0) / 4.0, 1e-9)));
  EXPECT_THAT(all.choices[1].score, Optional(DoubleNear((-4 - 2 - 1 + 0.5) / 4, 1e-9)));
  ASSERT_TRUE(all.choices[1].interval);
  EXPECT_LE(all.choices[1].interval->low, *all.choices[1].score);
  EXPECT_GE(all.choices[1].interval->high, *all.choices[1].score);
  // More than 2.5 % of the resamples have more than a quarter of lost runs.
  EXPECT_EQ(all.choices[0].interval->low, -INFINITY);
  EXPECT_TRUE(std::isfinite(all.choices[0].interval->high));
}

TEST(Score, IsWorstWhereMoreThanAQuarterIsLost) {
  std::vector<test::CellValues> cells = two_traces();
  cells[1].values[0].reset();
  const Answer answer = answer_to(cells);
  EXPECT_EQ(all_of(answer).choices[0].score, -INFINITY);
  EXPECT_THAT(to_text(document_of(Design(), answer, {})), HasSubstr("-∞ (-∞ to "));
  const auto json = nlohmann::json::parse(to_json(Design(), answer, {}))["all_conditions"];
  EXPECT_TRUE(json["choices"][0]["score"].is_null());
  EXPECT_TRUE(json["choices"][1]["score"].is_number());
}

TEST(Score, NeedsABaselineThatVaries) {
  std::vector<test::CellValues> cells = two_traces();
  cells[0].values = {0.9, 0.9, 0.9};
  const Answer answer = answer_to(cells);
  EXPECT_FALSE(all_of(answer).choices[0].score);
  EXPECT_THAT(to_text(document_of(Design(), answer, {})), HasSubstr("There is no score: "));
}

// Its numbers are a function of the places of conditions and seeds alone. These are those of
// another implementation of the generator, in Python.
TEST(Score, HasTheSameIntervalOnEveryMachine) {
  std::vector<test::CellValues> cells = two_traces();
  cells[1].values = {0.9, 0.89, 0.88};
  cells[3].values = {0.901, 0.915, 0.93};
  const Answer answer = answer_to(cells);
  EXPECT_NEAR(all_of(answer).choices[0].interval->low, -1.55, 1e-9);
  EXPECT_NEAR(all_of(answer).choices[0].interval->high, 0.0125, 1e-9);
}

TEST(AllConditions, AreATableAndJson) {
  std::vector<test::CellValues> cells = two_traces();
  const Answer answer = answer_to(cells, {}, Margin{5});
  EXPECT_THAT(to_text(document_of(Design(), answer, {})), HasSubstr("\nAll conditions together\n"
                                                                    "  rule    score"));
  const auto json = nlohmann::json::parse(to_json(Design(), answer, {}))["all_conditions"];
  EXPECT_EQ(json["conditions"].dump(), R"(["trace spot","trace saw"])");
  EXPECT_EQ(json["pairs"], 6);
  EXPECT_EQ(json["resamples"], 2000);
  EXPECT_EQ(json["choices"][1]["rule"], "root");
  EXPECT_EQ(json["choices"][1]["lost"], 0);
  EXPECT_EQ(json["choices"][1]["profile"].size(), json["distances"].size());
  EXPECT_EQ(json["choices"][1]["profile"][0], 5.0 / 6);
}

}  // namespace
}  // namespace rubato
