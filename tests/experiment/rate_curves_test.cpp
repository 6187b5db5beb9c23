#include "runs/experiment/answer/rate_curves.hpp"

#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "experiment/answers.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// The scores of a rule at 1/2 and 2 times the rate; what is empty has diverged.
struct OtherRates {
  std::vector<std::optional<double>> half;
  std::vector<std::optional<double>> twice;
};

// The deviation of the baseline is 1 point.
Answer answer_with(const std::vector<std::optional<double>>& linear, const OtherRates& other,
                   std::optional<Margin> margin = std::nullopt) {
  test::AnswerParts parts =
      test::answer_parts({{"constant", {0.80, 0.81, 0.82}, true}, {"linear", linear, false}});
  for (PlannedRun& run : parts.plan.runs) run.configuration.learning_rate = 0.1;
  const auto add = [&](std::size_t cell, double factor,
                       const std::vector<std::optional<double>>& values) {
    PlannedRate rate{.cell = cell, .factor = factor};
    for (const auto& value : values) {
      rate.runs.push_back(parts.plan.runs.size());
      parts.plan.runs.emplace_back();
      parts.plan.runs.back().configuration.learning_rate = 0.1 * factor;
      parts.results.push_back(
          {.end = value ? ResultEnd::finished : ResultEnd::diverged, .final_value = value});
    }
    parts.plan.rates.push_back(std::move(rate));
  };
  add(0, 0.5, {0.80, 0.81, 0.82});
  add(0, 2, {0.79, 0.80, 0.81});
  add(1, 0.5, other.half);
  add(1, 2, other.twice);
  Answer answer = parts.answer(std::nullopt, margin);
  answer.rates = rate_curves(parts.plan, answer, parts.results);
  return answer;
}

const OtherRates kUsual{.half = {0.80, 0.805, 0.82}, .twice = {0.90, 0.88, std::nullopt}};

TEST(RateCurves, HaveTheBestScoreAndItsSpan) {
  const Answer answer = answer_with({0.81, 0.81, 0.82}, kUsual);
  ASSERT_EQ(answer.rates.size(), 2U);
  const RateCurve& linear = answer.rates[1];
  ASSERT_EQ(linear.points.size(), 3U);
  EXPECT_EQ(linear.points[0].factor, 0.5);
  EXPECT_EQ(linear.points[0].rate, 0.05);
  EXPECT_EQ(linear.best, 1U);
  EXPECT_NEAR(linear.margin.value(), 1, 1e-9);
  EXPECT_EQ(linear.span, std::pair(0.5, 1.0)) << "a lost run is beyond it";
  EXPECT_EQ(linear.points[2].lost, 1);
  EXPECT_FALSE(linear.points[2].score.has_value());
  // The baseline loses a whole margin at twice the rate.
  EXPECT_EQ(answer.rates[0].span, std::pair(0.5, 1.0));
}

TEST(RateCurves, TakeTheMarginThatIsGiven) {
  EXPECT_EQ(answer_with({0.81, 0.81, 0.82}, kUsual, Margin{0.1}).rates[1].span,
            std::pair(1.0, 1.0));
  EXPECT_EQ(answer_with({0.81, 0.81, 0.82}, kUsual, Margin{2}).rates[0].span, std::pair(0.5, 2.0));
}

TEST(RateCurves, HaveNeitherWhereAllIsLost) {
  const std::vector<std::optional<double>> lost{0.5, 0.5, std::nullopt};
  const RateCurve curve = answer_with(lost, {lost, lost}).rates[1];
  EXPECT_FALSE(curve.best.has_value());
  EXPECT_FALSE(curve.span.has_value());
}

TEST(RateCurves, AreATableAndNumbers) {
  const Answer answer = answer_with({0.81, 0.81, 0.82}, kUsual);
  const AnswerDocument::Table table = rates_table(answer);
  EXPECT_EQ(table.title, "Learning rates from 1/2 to 2 times");
  EXPECT_THAT(table.rows[2], ElementsAre("t", "linear", "81.33", "0.1 (1)", "1/2 to 1"));
  const Answer strict = answer_with({0.81, 0.81, 0.82}, kUsual, Margin{0.1});
  EXPECT_EQ(rates_table(strict).rows[2].back(), "1") << "a span of one rate";
  const auto json = rates_json(answer)[1];
  EXPECT_EQ(json["rule"], "linear");
  EXPECT_EQ(json["best_factor"], 1);
  EXPECT_EQ(json["span"].dump(), "[0.5,1.0]");
  EXPECT_EQ(json["points"][2]["lost"], 1);
  EXPECT_TRUE(json["points"][2]["mean"].is_null());
}

}  // namespace
}  // namespace rubato
