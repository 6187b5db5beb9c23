// The page of an experiment says what its answer says.

#include "runs/page/compared/experiment_page.hpp"

#include <optional>
#include <string>

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
}

TEST(ExperimentCharts, HaveASmallFigureForEachCellWithTheBaselineBehindIt) {
  const nlohmann::ordered_json charts = charts_of(three_rules());
  const auto& figures = charts["sections"][1]["figures"];
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
