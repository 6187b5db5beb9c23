#include "runs/experiment/answer/answer.hpp"

#include <gmock/gmock.h>

#include <rubato/base/error.hpp>

#include "experiment/answers.hpp"
#include "runs/experiment/answer/statistics.hpp"
#include "runs/experiment/answer/tuning_answer.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::answer_to;

TEST(Answer, ComparesOverTheSameSeeds) {
  // The seeds differ by more than the rules, whose differences are 1, 2, 3, 4, 5 points.
  const Answer answer = answer_to({{"constant", {0.50, 0.60, 0.70, 0.80, 0.90}, true},
                                   {"linear", {0.51, 0.62, 0.73, 0.84, 0.95}, false}});
  const Answer::Cell& linear = answer.cells[1];
  EXPECT_NEAR(linear.value->mean, 73, 1e-9);
  ASSERT_TRUE(linear.to_baseline.has_value());
  EXPECT_NEAR(linear.to_baseline->difference.mean, 3, 1e-9);
  EXPECT_NEAR(linear.to_baseline->p.value(), 0.0132356, 1e-6);
  EXPECT_EQ(linear.verdict, Verdict::better);
  EXPECT_EQ(answer.cells[0].verdict, Verdict::baseline);
  EXPECT_FALSE(answer.cells[0].to_baseline.has_value());
  EXPECT_EQ(answer.comparisons, 1);
}

TEST(Answer, CorrectsForAllComparisons) {
  const std::vector<std::optional<double>> base{0.50, 0.60, 0.70, 0.80, 0.90};
  const std::vector<std::optional<double>> more{0.51, 0.62, 0.73, 0.84, 0.95};
  const Answer answer = answer_to({{"constant", base, true},
                                   {"a", more, false},
                                   {"b", more, false},
                                   {"c", more, false},
                                   {"d", more, false}});
  for (std::size_t i = 1; i < answer.cells.size(); ++i) {
    // 4 x 0.0132: what is better alone is tied among four.
    EXPECT_THAT(answer.cells[i].to_baseline->adjusted, Optional(DoubleNear(0.0529424, 1e-6)));
    EXPECT_EQ(answer.cells[i].verdict, Verdict::tied);
  }
}

TEST(Answer, NamesTheBestAndWhatIsTiedWithIt) {
  const Answer answer = answer_to({{"constant", {0.80, 0.81, 0.82}, true},
                                   {"best", {0.900, 0.912, 0.921}, false},
                                   {"near", {0.910, 0.900, 0.915}, false},
                                   {"far", {0.700, 0.713, 0.720}, false}});
  EXPECT_EQ(answer.cells[1].rank, Verdict::best);
  EXPECT_FALSE(answer.cells[1].to_best.has_value());
  EXPECT_EQ(answer.cells[2].rank, Verdict::tied);
  EXPECT_EQ(answer.cells[3].rank, Verdict::worse);
  EXPECT_LT(answer.cells[3].to_best->difference.mean, 0);
  EXPECT_EQ(answer.cells[3].verdict, Verdict::worse);
}

TEST(Answer, HasNoMeanWhereARunHasNoValue) {
  const Answer answer =
      answer_to({{"constant", {0.8, 0.8, 0.81}, true}, {"wild", {0.9, std::nullopt, 0.9}, false}});
  const Answer::Cell& wild = answer.cells[1];
  EXPECT_FALSE(wild.value.has_value());
  EXPECT_FALSE(wild.to_baseline.has_value());
  EXPECT_EQ(wild.rank, Verdict::lost);
  EXPECT_EQ(wild.verdict, Verdict::lost);
  EXPECT_EQ(answer.cells[0].rank, Verdict::best);
  EXPECT_THAT(answer.names_of(ResultEnd::diverged), ElementsAre("wild-2"));
  EXPECT_EQ(answer.comparisons, 0);
}

TEST(Answer, TakesTheMedianOfWhatReachedTheTarget) {
  const Answer answer = answer_to(
      {{"constant", {0.9, 0.9, 0.7, 0.9, 0.7}, true}, {"linear", {0.9, 0.7, 0.7, 0.7, 0.9}, false}},
      85);
  EXPECT_EQ(answer.cells[0].to_target->reached, 3);
  // After 10, 11 and 13 steps; two never.
  EXPECT_EQ(answer.cells[0].to_target->steps, 13);
  EXPECT_EQ(answer.cells[1].to_target->reached, 2);
  EXPECT_FALSE(answer.cells[1].to_target->steps.has_value());
}

TEST(Answer, OfOneSeedTestsNothing) {
  const Answer answer = answer_to({{"constant", {0.8}, true}, {"linear", {0.9}, false}});
  EXPECT_NEAR(answer.cells[1].to_baseline->difference.mean, 10, 1e-9);
  EXPECT_FALSE(answer.cells[1].to_baseline->adjusted.has_value());
  EXPECT_EQ(answer.cells[1].verdict, Verdict::untested);
  EXPECT_EQ(answer.cells[0].rank, Verdict::untested);
  EXPECT_FALSE(answer.cells[1].value->half_width.has_value());
  EXPECT_FALSE(answer.blindness.has_value());
}

// Of losses the lower are the better ones; and without a value to compare with there is no verdict.
TEST(Answer, JudgesLossesTheOtherWayRound) {
  test::AnswerParts parts =
      test::answer_parts({{"constant", {0.5, 0.5}, true}, {"linear", {0.25, 0.2501}, false}});
  parts.measure.is_accuracy = false;
  EXPECT_EQ(parts.answer().cells[1].verdict, Verdict::better);
  parts.results[0].final_value.reset();
  EXPECT_EQ(parts.answer().cells[1].verdict, std::nullopt);
}

// A coarse accuracy gives such differences by chance.
TEST(Answer, TestsNothingWhereAllSeedsDifferByTheSame) {
  const Answer answer = answer_to({{"constant", {0.80, 0.85, 0.90}, true},
                                   {"lucky", {0.81, 0.86, 0.91}},
                                   {"equal", {0.80, 0.85, 0.90}}});
  const Answer::Cell& lucky = answer.cells[1];
  EXPECT_EQ(lucky.to_baseline->p, std::nullopt);
  EXPECT_EQ(lucky.to_baseline->adjusted, std::nullopt);
  EXPECT_EQ(lucky.verdict, Verdict::untested);
  EXPECT_EQ(lucky.rank, Verdict::best);
  EXPECT_EQ(answer.cells[0].rank, Verdict::untested);
  EXPECT_EQ(answer.cells[2].verdict, Verdict::tied);
  EXPECT_FALSE(answer.blindness) << "no difference has a deviation";
}

TEST(Answer, SaysWhatCouldNotHaveBeenSeen) {
  const Answer answer = answer_to({{"constant", {0.50, 0.60, 0.70, 0.80, 0.90}, true},
                                   {"linear", {0.51, 0.62, 0.73, 0.84, 0.95}, false},
                                   {"same", {0.51, 0.61, 0.71, 0.81, 0.92}, false}});
  ASSERT_TRUE(answer.blindness.has_value());
  EXPECT_NEAR(answer.blindness->effect, detectable_effect(5, 0.025, 0.8), 1e-9);
  EXPECT_NEAR(answer.blindness->most, answer.blindness->effect * std::sqrt(2.5), 1e-6);
  EXPECT_LT(answer.blindness->least, answer.blindness->middle);
}

// What was tried for lr, with the final accuracies of the runs of each value.
std::vector<TuningAnswer> tuned(const std::vector<std::vector<std::optional<double>>>& values,
                                const Measure& measure = {}) {
  Design design;
  design.tuning = Tuning{.option = "lr"};
  std::vector<TuningCell> cells;
  std::vector<RunResult> results;
  double lr = 0.1;
  for (const auto& finals : values) {
    cells.push_back({.subject = 0, .value = fmt::to_string(lr), .runs = {}});
    for (const auto& value : finals) {
      cells.back().runs.emplace_back();
      results.push_back(
          {.end = value ? ResultEnd::finished : ResultEnd::diverged, .final_value = value});
    }
    lr *= 2;
  }
  const std::vector<Measure> measures(results.size(), measure);
  return tuning_answer(design, cells, results, measures);
}

TEST(TuningAnswer, TakesTheBestMean) {
  const auto answers = tuned({{0.80, 0.80}, {0.89, 0.87}, {0.90, 0.80}});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].best, 1U);
  EXPECT_FALSE(answers[0].at_end);
  EXPECT_EQ(answers[0].setting, "");
}

TEST(TuningAnswer, SaysThatTheBestIsAtAnEnd) {
  EXPECT_TRUE(tuned({{0.9}, {0.8}, {0.7}})[0].at_end);
  EXPECT_TRUE(tuned({{0.7}, {0.8}, {0.9}})[0].at_end);
}

TEST(TuningAnswer, PassesOverWhatDiverged) {
  const auto answers = tuned({{0.7, 0.7}, {0.8, 0.8}, {0.99, std::nullopt}});
  EXPECT_EQ(answers[0].best, 1U);
  EXPECT_THAT(answers[0].values[2].ends, ElementsAre("finished", "diverged"));
  EXPECT_TRUE(answers[0].values[2].is_lost);
}

TEST(TuningAnswer, IsAnErrorWhereNothingTrains) {
  Design list;
  list.tuning = parse_tuning("lr=0.1,0.2");
  const auto lost = tuned({{std::nullopt}, {std::nullopt}});
  EXPECT_THAT(error_of([&] { require_tuned(list, lost); }),
              HasSubstr("no value of lr brought its runs to an end; accepted: "));
  Design search;
  search.tuning = parse_tuning("lr");
  EXPECT_THAT(error_of([&] { require_tuned(search, lost); }),
              AllOf(HasSubstr("no rate between 0.1 and 0.2 trains the baseline (its runs: "
                              "diverged); accepted: "),
                    HasSubstr("--lr X")));
  // A loss has no level that is chance, but one that no rate changes.
  const Measure loss{.is_accuracy = false};
  EXPECT_THAT(error_of([&] {
                require_tuned(search, tuned({{0.5}, {0.5}, {0.5}}, loss));
              }),
              HasSubstr("(all losses are the same)"));
  EXPECT_EQ(error_of([&] {
              require_tuned(search, tuned({{0.5}, {0.4}, {0.5}}, loss));
            }),
            "no error");
  EXPECT_EQ(error_of([&] { require_tuned(search, tuned({{0.5}, {0.5}, {0.5}})); }), "no error");
}

TEST(TuningAnswer, SaysWhetherTheRateWasTuned) {
  Design design;
  EXPECT_EQ(untuned_rate(design), "lr 0.01 as given: not tuned");
  design.tuning = parse_tuning("momentum=0.5,0.9");
  EXPECT_EQ(untuned_rate(design), "lr 0.01 as given: not tuned");
  design.tuning = parse_tuning("lr");
  EXPECT_EQ(untuned_rate(design), "");
  design.tuning.reset();
  set_values(design, "lr", {"0.1", "0.2"});
  EXPECT_EQ(untuned_rate(design), "");
}

// Batch sizes are those of the run that met most of them.
TEST(Answer, PutsTogetherWhatTheRunsOfACellMet) {
  test::AnswerParts parts = test::answer_parts({{"linear", {0.5, 0.5, 0.5}, true}});
  parts.results[0].elasticity = Elasticity{3, 64, 256, 4, 8};
  parts.results[2].elasticity = Elasticity{2, 128, 512, 2, 6};
  EXPECT_EQ(parts.answer().cells.at(0).elasticity, (Elasticity{3, 64, 512, 2, 8}));
}

}  // namespace
}  // namespace rubato
