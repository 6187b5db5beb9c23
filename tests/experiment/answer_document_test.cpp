#include "runs/experiment/answer/answer_document.hpp"

#include <initializer_list>
#include <sstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "experiment/answers.hpp"
#include "runs/experiment/answer/answer_columns.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

using test::answer_to;

Answer some_answer() {
  return answer_to({{"constant", {0.50, 0.60, 0.70, 0.80, 0.90}, true},
                    {"linear:ramp=2", {0.51, 0.62, 0.73, 0.84, 0.95}, false},
                    {"wild", {0.9, std::nullopt, 0.9, std::nullopt, 0.9}, false}},
                   85);
}

std::string text_of(const Answer& answer) {
  return to_text(document_of(Design(), answer, {}));
}

TEST(AnswerDocument, HasARowForEachCellTheBestFirst) {
  const std::string text = text_of(some_answer());
  EXPECT_THAT(text, HasSubstr("  rule           accuracy %       rank   to the baseline  p (Holm)  "
                              "verdict\n"
                              "  linear:ramp=2  73.00 ± 21.60    best   +3.00 ± 1.96     0.013     "
                              "better\n"
                              "  constant       70.00 ± 19.63    worse  -                -         "
                              "baseline\n"
                              "  wild           2 of 5 diverged  lost   -                -         "
                              "lost\n"
                              "Best: linear:ramp=2. All others that have a value are worse.\n"));
}

TEST(AnswerDocument, HasAFindingForEachCondition) {
  const AnswerDocument document = document_of(Design(), some_answer(), {});
  EXPECT_THAT(document.findings,
              ElementsAre("trace t: Best: linear:ramp=2. All others that have a value are "
                          "worse. Lost: wild."));
  const Answer lost = answer_to({{"a", {0.8}, true}, {"b", {std::nullopt}, false}});
  EXPECT_THAT(document_of(Design(), lost, {}).findings, ElementsAre(EndsWith("Lost: b.")));
}

TEST(AnswerDocument, SaysThatAllOthersAreWorseWhereAllHaveAValue) {
  const Answer all = answer_to({{"a", {0.90, 0.91, 0.92}, true}, {"b", {0.5, 0.51, 0.53}}});
  EXPECT_THAT(document_of(Design(), all, {}).findings,
              ElementsAre("trace t: Best: a. All others are worse."));
}

TEST(AnswerDocument, SaysWhatHasNoMean) {
  EXPECT_THAT(text_of(some_answer()),
              HasSubstr("diverged (the loss or the gradient became infinite or NaN): wild-2, "
                        "wild-4"));
}

TEST(AnswerDocument, SaysWhatTheSeedsCannotShow) {
  EXPECT_THAT(text_of(some_answer()),
              HasSubstr("What 5 seeds cannot show: a true difference to the "
                        "baseline below 2.66 points is"));
  const std::string one = text_of(answer_to({{"a", {0.8}, true}, {"b", {0.9}, false}}));
  EXPECT_THAT(one,
              AllOf(HasSubstr("What one seed cannot show"), HasSubstr("+10.00"),
                    HasSubstr("One seed cannot tell it from the others"), Not(HasSubstr("±"))));
}

TEST(AnswerDocument, EndsWithWhatMovesWithTheSizeOfANetwork) {
  const auto limits_with = [](const std::string& rule) {
    return document_of(Design(), answer_to({{"a", {0.8}, true}, {rule, {0.9}}}), {}).limits;
  };
  EXPECT_THAT(limits_with("b"), EndsWith("(docs/findings.md, \"Does it transfer?\")."));
  EXPECT_THAT(limits_with("a"), EndsWith("has both.")) << "one rule has no order";
}

TEST(AnswerDocument, FitsANarrowTerminal) {
  const AnswerDocument document = document_of(Design(), some_answer(), {});
  for (const std::size_t columns : std::initializer_list<std::size_t>{40, 50, 60, 79}) {
    std::istringstream lines(to_text(document, {columns}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), columns) << line;
  }
  EXPECT_THAT(to_text(document, {40}), HasSubstr("\n\n  rule           p (Holm)  verdict\n"));
}

TEST(AnswerDocument, IsMarkdown) {
  const std::string text = to_markdown(document_of(Design(), some_answer(), {}));
  EXPECT_THAT(text,
              HasSubstr("## trace t\n| rule | accuracy % | rank | to the baseline | p (Holm) | "
                        "verdict |\n|---|---|---|---|---|---|\n| linear:ramp=2 | 73.00"));
  EXPECT_THAT(text, HasSubstr("| wild | 20 | 2000 | 0 | - | 3 of 5 | 14 |\n"));
}

TEST(AnswerFiles, HaveALineForEachCell) {
  const std::string csv = cells_csv(some_answer());
  std::istringstream lines(csv);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 4U);
  const auto fields = [](const std::string& line) { return std::ranges::count(line, ','); };
  for (const std::string& line : all) EXPECT_EQ(fields(line), fields(all[0])) << line;
  EXPECT_THAT(
      all[3],
      StartsWith("t,wild,trace t,false,5,3,2,0,0,0,0,0,,,,lost,,,,,,lost,,,,,,20,2000,2,0,"));
}

TEST(AnswerFiles, HaveALineForEachRun) {
  const std::string csv = runs_csv(some_answer());
  EXPECT_THAT(csv, HasSubstr("\nwild-2,t,wild,2,false,diverged,,,2,20,2000,0,,,,,,,,,,0\n"));
  EXPECT_THAT(csv, HasSubstr("\nlinear:ramp=2-1,t,linear:ramp=2,1,false,finished,0.51,0.51,"));
}

TEST(AnswerFiles, AreJson) {
  const auto json = nlohmann::json::parse(to_json(Design(), some_answer(), {}));
  EXPECT_EQ(json["comparisons"], 1);
  EXPECT_EQ(json["cells"][1]["rule"], "linear:ramp=2");
  EXPECT_NEAR(json["cells"][1]["to_baseline"]["p_holm"], 0.0132356, 1e-6);
  EXPECT_TRUE(json["cells"][2]["value"].is_null());
  EXPECT_EQ(json["cells"][2]["ends"]["diverged"], 2);
  EXPECT_EQ(json["runs"].size(), 15U);
  EXPECT_EQ(json["runs"][11]["end"], "diverged");
}

TEST(AnswerDocument, SaysWhichRunsRanOutOfDevices) {
  Answer answer = some_answer();
  answer.runs[11].result.end = ResultEnd::out_of_devices;
  EXPECT_THAT(text_of(answer),
              AllOf(HasSubstr("1 of 5 diverged, 1 of 5 out of devices"),
                    HasSubstr("out of devices (the availability had no devices for the rest of "
                              "the training):\nwild-2\n")));
  EXPECT_THAT(cells_csv(answer), HasSubstr("\nt,wild,trace t,false,5,3,1,1,0,0,0,0,"));
}

// Of the runs of a trace that never changed; and of those that spent more than they were allowed.
TEST(AnswerDocument, SaysWhatTheTracesDid) {
  Answer answer = some_answer();
  for (Answer::Cell& cell : answer.cells) {
    cell.elasticity = Elasticity{1, 512, 512, 16, 16};
  }
  Design design;
  design.base.epochs = 1;
  const std::string constant = to_text(document_of(design, answer, {}));
  EXPECT_THAT(constant, AllOf(HasSubstr("Nothing changed here"),
                              HasSubstr("Not what the budget of 1 epoch allows")));
  answer.cells[0].elasticity = Elasticity{7, 32, 512, 1, 16};
  design.base.epochs = 2;
  const AnswerDocument document = document_of(design, answer, {});
  EXPECT_THAT(to_text(document),
              AllOf(Not(HasSubstr("Nothing changed here")), Not(HasSubstr("Not what the budget"))));
  EXPECT_THAT(to_markdown(document), HasSubstr("| constant | 20 | 2000 | 0 | 7 |"));
  EXPECT_THAT(cells_csv(answer), HasSubstr(",7,32,512,1,16,"));
}

// Titles, too; and all columns that say what a row is of stand in each of its tables.
TEST(AnswerDocument, HasItsKeysInEachTableOfANarrowTerminal) {
  const AnswerDocument document{.facts = {},
                                .tables = {{.title = "trace spot, minibatch of 16",
                                            .alignment = std::vector(4, Column::left),
                                            .keys = 2,
                                            .rows = {{"rule", "lr", "accuracy %", "rank of all"},
                                                     {"root", "0.1", "93.25", "best"}}}},
                                .notes = {},
                                .limits = "Little."};
  EXPECT_EQ(to_text(document, {26}),
            "\ntrace spot, minibatch of\n  16\n"
            "  rule  lr   accuracy %\n"
            "  root  0.1  93.25\n"
            "\n"
            "  rule  lr   rank of all\n"
            "  root  0.1  best\n"
            "\nLittle.\n");
}

TEST(AnswerDocument, SaysWhyThereIsNoVerdict) {
  const Answer answer =
      answer_to({{"constant", {0.80, 0.85, 0.90}, true}, {"lucky", {0.81, 0.86, 0.91}}});
  const AnswerDocument document = document_of(Design(), answer, {});
  EXPECT_THAT(
      document.findings,
      ElementsAre("trace t: Best: lucky. Not tested against the best: constant. Not tested against "
                  "the baseline: lucky. The difference is the same for every seed, so nothing says "
                  "how much of it is chance; more seeds would."));
  EXPECT_THAT(document.limits, HasSubstr("how much of a difference to the baseline is chance"));
  EXPECT_THAT(to_text(document), ContainsRegex("best +[+]1.00 +- +untested\n"));
}

}  // namespace
}  // namespace rubato
