// Tests of non-inferiority (--margin).

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "experiment/answers.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "runs/experiment/answer/answer_document.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::answer_to;

using Cells = std::vector<test::CellValues>;

// The deviation of the baseline is sqrt(20 / 3) points. Behind it are linear by 0, 1, 0 and 1
// points, and root by 1 to 4.
const Cells& three_rules() {
  static const Cells cells{{"constant", {0.90, 0.92, 0.94, 0.96}, true},
                           {"linear", {0.90, 0.91, 0.94, 0.95}},
                           {"root", {0.89, 0.90, 0.91, 0.92}}};
  return cells;
}

TEST(MarginOfABaseline, IsItsDeviation) {
  const Answer answer = answer_to(three_rules(), {}, Margin());
  const auto& linear = answer.cells[1].margin_to_baseline;
  ASSERT_TRUE(linear);
  EXPECT_NEAR(linear->margin, std::sqrt(20.0 / 3), 1e-9);
  // By scipy.stats.t.
  EXPECT_THAT(linear->bound, Optional(DoubleNear(1.1793575063, 1e-8)));
  EXPECT_THAT(linear->p, Optional(DoubleNear(0.00274766880, 1e-9)));
  EXPECT_THAT(linear->adjusted, Optional(DoubleNear(2 * 0.00274766880, 1e-9))) << "of two cells";
  EXPECT_EQ(linear->seeds, 2);
  EXPECT_EQ(linear->verdict, Verdict::non_inferior);
  const auto& root = answer.cells[2].margin_to_baseline;
  EXPECT_THAT(root->adjusted, Optional(testing::Gt(0.05)));
  EXPECT_EQ(root->verdict, Verdict::not_shown);
  EXPECT_EQ(answer.cells[0].margin_to_baseline->verdict, Verdict::baseline);
  // The baseline is the best as well.
  EXPECT_EQ(answer.cells[0].margin_to_best->verdict, Verdict::best);
  EXPECT_EQ(answer.cells[1].margin_to_best->bound, linear->bound);
}

TEST(MarginOfANumber, IsInTheUnitOfTheAnswer) {
  const auto tested = [](const test::AnswerParts& parts, double margin) {
    return *parts.answer({}, Margin{margin}).cells[1].margin_to_baseline;
  };
  test::AnswerParts parts = test::answer_parts(three_rules());
  EXPECT_EQ(tested(parts, 1.5).margin, 1.5);
  EXPECT_THAT(tested(parts, 1).p, Optional(DoubleNear(0.0908450569, 1e-9)));
  EXPECT_EQ(tested(parts, 1).seeds, 3);
  // The same numbers as losses: linear is better, by 0, 0.01, 0 and 0.01.
  parts.measure.is_accuracy = false;
  EXPECT_THAT(tested(parts, 0.01).bound, Optional(DoubleNear(-0.005 + 0.006793575063, 1e-10)));
  EXPECT_EQ(tested(parts, 0.01).verdict, Verdict::non_inferior);
}

TEST(Margin, IsNotThereUnlessAsked) {
  const Answer answer = answer_to(three_rules());
  for (const Answer::Cell& cell : answer.cells) {
    EXPECT_FALSE(cell.margin_to_baseline);
    EXPECT_FALSE(cell.margin_to_best);
  }
  EXPECT_THAT(to_text(document_of(Design(), answer, {})), Not(HasSubstr("inferior")));
}

// Its p-value counts as 1, so that the correction of the others does not depend on what is lost.
TEST(Margin, TakesALostRunForTheWorstRank) {
  Cells cells = three_rules();
  cells[2].values[3].reset();
  const Answer answer = answer_to(cells, {}, Margin());
  const auto& root = answer.cells[2].margin_to_baseline;
  EXPECT_EQ(root->verdict, Verdict::lost);
  EXPECT_EQ(root->p, 1);
  EXPECT_FALSE(root->bound || root->seeds);
  EXPECT_EQ(answer.cells[2].margin_to_best->verdict, Verdict::lost);
  EXPECT_THAT(answer.cells[1].margin_to_baseline->adjusted,
              Optional(DoubleNear(2 * 0.00274766880, 1e-9)));
  const auto tables = document_of(Design(), answer, {}).tables;
  const auto table = std::ranges::find(tables, AnswerTable::margins, &AnswerDocument::Table::kind);
  ASSERT_NE(table, tables.end());
  EXPECT_THAT(table->notes, ElementsAre(EndsWith("its cell is not non-inferior.")));
}

// So does one that has a value, but no longer answers better than chance.
TEST(Margin, TakesAnUnlearnedRunForLost) {
  test::AnswerParts parts = test::answer_parts(three_rules());
  parts.results[4].end = ResultEnd::unlearned;
  EXPECT_EQ(parts.answer({}, Margin{50}).cells[1].margin_to_baseline->verdict, Verdict::lost);
  // Nothing is compared with a baseline that has one; the best is the best of the others.
  parts.results[4].end = ResultEnd::finished;
  parts.results[0].end = ResultEnd::unlearned;
  const Answer answer = parts.answer({}, Margin{50});
  EXPECT_FALSE(answer.cells[1].margin_to_baseline);
  EXPECT_EQ(answer.cells[1].margin_to_best->verdict, Verdict::best);
  EXPECT_EQ(answer.cells[0].margin_to_best->verdict, Verdict::lost);
  const Answer none = parts.answer({}, Margin());
  EXPECT_FALSE(none.cells[1].margin_to_best);
  EXPECT_THAT(to_text(document_of(Design(), none, {})), HasSubstr("There is no margin: "));
}

TEST(Margin, TestsNothingWithOneSeed) {
  const Cells cells{{"constant", {0.8}, true}, {"linear", {0.9}}};
  const Answer answer = answer_to(cells, {}, Margin{1});
  EXPECT_EQ(answer.cells[0].margin_to_best->verdict, Verdict::untested);
  EXPECT_EQ(answer.cells[1].margin_to_baseline->verdict, Verdict::untested);
  EXPECT_FALSE(answer_to(cells, {}, Margin()).cells[1].margin_to_baseline);
}

TEST(Margin, TestsNothingWhereAllSeedsAreBehindByTheSame) {
  const Cells cells{{"constant", {0.90, 0.92, 0.94}, true}, {"linear", {0.89, 0.91, 0.93}}};
  const Answer answer = answer_to(cells, {}, Margin{5});
  for (const auto& test : {answer.cells[1].margin_to_baseline, answer.cells[1].margin_to_best}) {
    EXPECT_EQ(test->verdict, Verdict::untested);
    EXPECT_FALSE(test->p || test->bound || test->seeds);
  }
  EXPECT_THAT(
      to_text(document_of(Design(), answer, {})),
      HasSubstr("is behind by the same for every seed, for which the test is not defined."));
}

// The setting with the better baseline sets the margin to the best; each setting its own to its
// baseline.
TEST(Margin, IsThatOfTheBestBaselineOfSeveral) {
  test::AnswerParts parts = test::answer_parts({{"constant", {0.90, 0.92}, true},
                                                {"linear", {0.91, 0.92}},
                                                {"constant", {0.50, 0.60}, true},
                                                {"linear", {0.52, 0.60}}});
  parts.plan.settings = {"lr 0.1", "lr 1"};
  parts.plan.cells[2].setting = parts.plan.cells[3].setting = 1;
  const Answer answer = parts.answer({}, Margin());
  EXPECT_NEAR(answer.cells[3].margin_to_best->margin, std::sqrt(2), 1e-9);
  EXPECT_NEAR(answer.cells[3].margin_to_baseline->margin, 10 / std::sqrt(2), 1e-9);
  EXPECT_NEAR(answer.cells[1].margin_to_baseline->margin, std::sqrt(2), 1e-9);
}

TEST(Margin, IsSaidInWordsAndFiles) {
  Design design;
  design.margin = Margin();
  const Answer answer = answer_to(three_rules(), {}, design.margin);
  const AnswerDocument document = document_of(design, answer, {});
  EXPECT_THAT(
      to_text(document),
      AllOf(HasSubstr("margin: one standard deviation of the baseline over the seeds;"),
            HasSubstr("Non-inferior to the best: linear.\n"),
            HasSubstr("\ntrace t: non-inferior by a margin of 2.58 points\n"
                      "  rule      behind the baseline  p (Holm)  verdict       seeds  behind the "
                      "best  p (Holm)  verdict       seeds\n"
                      "  constant  -                    -         baseline          -  -           "
                      "     -         best              -\n"
                      "  linear    at most 1.18         0.005     non-inferior      2  at most 1.18"
                      "     0.005     non-inferior      2\n")));
  EXPECT_THAT(document.findings, ElementsAre(HasSubstr(". Non-inferior to the best: lin")));
  EXPECT_THAT(cells_csv(answer), HasSubstr(",non-inferior,2\n"));
  EXPECT_THAT(to_json(design, answer, {}), HasSubstr("\"margin\": \"baseline\""));
}

}  // namespace
}  // namespace rubato
