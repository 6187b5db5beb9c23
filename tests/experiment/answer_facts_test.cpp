#include "runs/experiment/answer/answer_facts.hpp"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "experiment/answers.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::answer_to;

Answer two_rules() {
  return answer_to({{"constant", {0.8, 0.9}, true}, {"linear", {0.9, 0.9}, false}});
}

std::string limits_in(const Design& design) {
  return facts_of(design, two_rules(), {}).at(1);
}

TEST(AnswerFacts, SayWhatEndsTheRuns) {
  Design design;
  EXPECT_EQ(limits_in(design), "each run: 5 epochs; seeds 1, 2");
  design.base.samples = 30'000;
  EXPECT_EQ(limits_in(design),
            "each run: 5 epochs or 30000 samples, whichever is first; seeds 1, 2");
  design.base.samples.reset();
  design.budget = parse_budget("samples=30000");
  design.base.epochs = 1'000'000;
  EXPECT_EQ(limits_in(design), "each run: 30000 samples; seeds 1, 2");
  design.budget = {};
  design.base.epochs = 5;
  set_values(design, "epochs", {"1", "2"});
  EXPECT_EQ(limits_in(design), "no budget in common; seeds 1, 2");
}

// Of 40 learning rates there are as many baselines.
TEST(AnswerFacts, SayWhatManyBaselinesHaveInCommon) {
  Answer answer = two_rules();
  answer.columns = {"trace", "rule", "lr"};
  answer.cells.resize(1);
  answer.cells[0].labels = {"128", "constant", "0.1"};
  EXPECT_THAT(facts_of(Design(), answer, {}),
              Contains("baseline: trace 128, rule constant, lr 0.1"));
  for (int i = 1; i < 40; ++i) {
    answer.cells.push_back(answer.cells[0]);
    answer.cells.back().labels[2] = fmt::format("0.{}1", i);
  }
  EXPECT_THAT(facts_of(Design(), answer, {}),
              Contains("40 baselines: trace 128, rule constant; one for each lr"));
}

TEST(AnswerFacts, SayWhichOptionsTheBaselineAloneHas) {
  Answer answer = two_rules();
  answer.columns = {"trace", "rule"};
  answer.cells.resize(1);
  answer.cells[0].labels = {"256", "constant"};
  Design design;
  design.baseline = {{.name = "trace", .value = "256"}, {.name = "lr", .value = "0.5"}};
  EXPECT_THAT(facts_of(design, answer, {}),
              Contains("baseline: trace 256, rule constant (with lr 0.5)"));
}

TEST(AnswerFacts, ListFewSeedsAndShortenMany) {
  Answer answer = two_rules();
  answer.seeds = {"1", "2", "3", "4", "5"};
  EXPECT_THAT(facts_of(Design(), answer, {}), Contains(HasSubstr("; seeds 1..5")));
  answer.seeds[4] = "7";
  EXPECT_THAT(facts_of(Design(), answer, {}), Contains(HasSubstr("; seeds 1, 2, 3, 4, 7")));
}

TEST(AnswerFacts, SayWhereNothingChanged) {
  Answer answer = two_rules();
  EXPECT_EQ(constant_in_words(answer, 0), "") << "nobody knows";
  const Elasticity constant{1, 512, 512, 16, 16};
  for (Answer::Cell& cell : answer.cells) cell.elasticity = constant;
  EXPECT_THAT(constant_in_words(answer, 0), HasSubstr("every step had a batch of 512 on 16 cores"));
  // A number promises no change.
  for (Answer::Cell& cell : answer.cells) cell.labels[0] = "512";
  EXPECT_EQ(constant_in_words(answer, 0), "");
  for (Answer::Cell& cell : answer.cells) cell.labels[0] = "t";
  answer.cells[1].elasticity->fewest_cores = 15;
  EXPECT_EQ(constant_in_words(answer, 0), "");
  answer.cells[1].elasticity = constant;
  answer.cells[1].elasticity->least_batch = 256;
  EXPECT_EQ(constant_in_words(answer, 0), "");
  // Each of them constant, but not the same.
  answer.cells[1].elasticity = constant;
  answer.cells[1].elasticity->most_cores = answer.cells[1].elasticity->fewest_cores = 8;
  EXPECT_EQ(constant_in_words(answer, 0), "");
  // Of another condition nothing is said.
  answer.cells[1].condition = 1;
  EXPECT_THAT(constant_in_words(answer, 0), HasSubstr("on 16 cores"));
  EXPECT_THAT(constant_in_words(answer, 1), HasSubstr("on 8 cores"));
}

TEST(AnswerFacts, SayWhereTheBudgetIsNotWhatWasSpent) {
  Answer answer = two_rules();
  Design design;
  design.budget = parse_budget("hours=2");
  design.base.epochs = 1'000'000;
  const std::vector<std::size_t> columns{1};
  const std::vector<const Answer::Cell*> cells{&answer.cells[0], &answer.cells[1]};
  answer.cells[0].spent->hours = 2.01;
  answer.cells[1].spent->hours = 1.99;
  EXPECT_EQ(off_budget_in_words(design, cells, columns), "");
  answer.cells[1].spent->hours = 2.5;
  EXPECT_EQ(off_budget_in_words(design, cells, columns),
            "Not what the budget of 2 virtual hours allows: linear spent 2.5 (+25 %).");
  answer.cells[0].spent->hours = 1;
  EXPECT_THAT(off_budget_in_words(design, cells, columns),
              HasSubstr("constant spent 1 (-50 %), linear spent 2.5 (+25 %)."));
}

}  // namespace
}  // namespace rubato
