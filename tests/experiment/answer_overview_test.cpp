#include <utility>

#include <gmock/gmock.h>

#include "runs/experiment/answer/answer_facts.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

// An answer with the columns data, trace and rule.
class OverviewTest : public testing::Test {
 protected:
  OverviewTest() { answer_.columns = {"data", "trace", "rule"}; }

  // Each cell has two runs, of which so many were lost; `mean` in percent, or none.
  Answer::Cell& add(std::vector<std::string> labels, std::size_t condition,
                    std::optional<double> mean, std::size_t lost = 0) {
    Answer::Cell cell{.labels = std::move(labels), .condition = condition, .runs = 2};
    if (mean) cell.value = Estimate{.mean = *mean};
    for (std::size_t run = 0; run < 2; ++run) {
      cell.members.push_back(answer_.runs.size());
      Answer::Run& made = answer_.runs.emplace_back();
      made.result.end = run < lost ? ResultEnd::diverged : ResultEnd::finished;
    }
    return answer_.cells.emplace_back(std::move(cell));
  }

  Answer answer_;
};

TEST_F(OverviewTest, HasAColumnForEachTraceAndATableForEachOtherCondition) {
  add({"mnist", "saw", "root"}, 0, 98.7).rank = Verdict::best;
  add({"mnist", "saw", "linear"}, 0, std::nullopt, 2);
  add({"mnist", "spot", "root"}, 1, 98.5).rank = Verdict::worse;
  add({"mnist", "spot", "linear"}, 1, 98.6).rank = Verdict::best;
  add({"fashion", "saw", "root"}, 2, 87.1).rank = Verdict::tied;
  add({"fashion", "saw", "linear"}, 2, 24.78, 1).rank = Verdict::worse;
  add({"mnist", "128", "constant"}, 3, 98.9).is_baseline = true;
  const auto tables = overviews_of(answer_);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].title, "Overview, data mnist: accuracy %");
  EXPECT_THAT(tables[0].rows, ElementsAre(ElementsAre("rule", "saw", "spot", "128, baseline"),
                                          ElementsAre("root", "98.70 best", "98.50", ""),
                                          ElementsAre("linear", "2 of 2 lost", "98.60 best", ""),
                                          ElementsAre("constant", "", "", "98.90")));
  EXPECT_EQ(tables[0].alignment.size(), 4U);
  EXPECT_EQ(tables[1].title, "Overview, data fashion: accuracy %");
  EXPECT_THAT(tables[1].rows,
              ElementsAre(ElementsAre("rule", "saw"), ElementsAre("root", "87.10 tied"),
                          ElementsAre("linear", "24.78, 1 lost")));
  EXPECT_THAT(tables[0].notes, IsEmpty());
  EXPECT_EQ(tables[1].notes.size(), 1U);
}

TEST_F(OverviewTest, IsNotThereForOneConditionBesideTheBaseline) {
  add({"mnist", "saw", "root"}, 0, 98.7);
  add({"mnist", "saw", "linear"}, 0, 98.7);
  add({"mnist", "128", "constant"}, 1, 98.9).is_baseline = true;
  EXPECT_THAT(overviews_of(answer_), IsEmpty());
}

TEST_F(OverviewTest, HasTheFirstConditionAcrossWhereNoTracesAreCompared) {
  answer_.columns = {"data", "rule"};
  answer_.is_accuracy = false;
  add({"mnist", "root"}, 0, 0.0123456);
  add({"fashion", "root"}, 1, 1234.5678);
  const auto tables = overviews_of(answer_);
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].title, "Overview: test loss");
  EXPECT_THAT(tables[0].rows, ElementsAre(ElementsAre("rule", "mnist", "fashion"),
                                          ElementsAre("root", "0.01235", "1235")));
}

TEST_F(OverviewTest, IsNotThereWithoutConditions) {
  answer_.columns = {"rule"};
  add({"root"}, 0, 98.7);
  add({"linear"}, 0, 98.7);
  EXPECT_THAT(overviews_of(answer_), IsEmpty());
}

}  // namespace
}  // namespace rubato
