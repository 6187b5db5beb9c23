#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "runs/page/experiment_page.hpp"

namespace rubato::page {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// A cell of the condition "trace" and a rule, with a run for each value.
void add_cell(Answer& answer, std::size_t condition, const std::string& rule,
              const std::vector<std::optional<double>>& values, bool is_baseline = false) {
  Answer::Cell& cell = answer.cells.emplace_back();
  cell.labels = {answer.conditions[condition], rule};
  cell.condition = condition;
  cell.is_baseline = is_baseline;
  cell.runs = static_cast<std::int64_t>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    cell.members.push_back(answer.runs.size());
    Answer::Run& run = answer.runs.emplace_back();
    run.labels = cell.labels;
    run.seed = i + 1;
    run.result.final_value = values[i];
  }
}

Answer two_traces() {
  Answer answer;
  answer.columns = {"trace", "rule"};
  answer.conditions = {"constant", "spot", "diurnal"};
  answer.settings = {""};
  add_cell(answer, 0, "linear", {0.99, 0.99}, /*is_baseline=*/true);
  add_cell(answer, 1, "linear", {0.90, 0.80});
  add_cell(answer, 1, "root", {0.91, 0.70});
  add_cell(answer, 2, "linear", {0.95, std::nullopt});
  add_cell(answer, 2, "root", {0.95, 0.90});
  return answer;
}

TEST(PerformanceProfiles, AreOfEveryPairOfConditionAndSeedButTheBaselines) {
  const PerformanceProfiles all = performance_profiles(two_traces());
  EXPECT_EQ(all.problems, 4U);
  ASSERT_EQ(all.profiles.size(), 2U);
  EXPECT_EQ(all.profiles[0].label, "linear");
  // Of its four runs one has no result.
  EXPECT_THAT(all.profiles[0].behind, ElementsAre(0, 0, DoubleNear(1, 1e-9)));
  EXPECT_EQ(all.profiles[1].label, "root");
  EXPECT_THAT(all.profiles[1].behind, ElementsAre(0, 0, 0, DoubleNear(10, 1e-9)));
}

TEST(PerformanceProfiles, AreBehindTheLeastLoss) {
  Answer answer = two_traces();
  answer.is_accuracy = false;
  EXPECT_THAT(performance_profiles(answer).profiles[1].behind,
              ElementsAre(0, 0, 0, DoubleNear(0.01, 1e-9)));
}

TEST(PerformanceProfiles, AreLeftOutOfOneConditionAndOfOneChoice) {
  Answer one_condition = two_traces();
  one_condition.cells.resize(3);
  EXPECT_TRUE(performance_profiles(one_condition).profiles.empty());
  Answer one_choice = two_traces();
  std::erase_if(one_choice.cells,
                [](const Answer::Cell& cell) { return cell.labels[1] == "root"; });
  EXPECT_TRUE(performance_profiles(one_choice).profiles.empty());
}

TEST(ExperimentCharts, HavePerformanceProfilesOverTheTraces) {
  const nlohmann::ordered_json charts = charts_of(two_traces());
  const auto& figure = charts["sections"][1]["figures"][0];
  EXPECT_EQ(figure["type"], "profile");
  EXPECT_EQ(figure["problems"], 4);
  EXPECT_EQ(figure["rows"][0].dump(), R"({"label":"linear","behind":[0,0,1]})");
}

}  // namespace
}  // namespace rubato::page
