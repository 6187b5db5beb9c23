#include <optional>

#include <gmock/gmock.h>

#include "experiment/answers.hpp"
#include "runs/page/experiment_page.hpp"

namespace rubato::page {
namespace {

TEST(ExperimentCharts, HavePerformanceProfilesOverTheTraces) {
  const Answer answer = test::answer_to({{"constant", {0.99, 0.99}, true, "128"},
                                         {"linear", {0.90, 0.80}, false, "spot"},
                                         {"root", {0.91, 0.70}, false, "spot"},
                                         {"linear", {0.95, std::nullopt}, false, "saw"},
                                         {"root", {0.95, 0.90}, false, "saw"}});
  const nlohmann::ordered_json charts = charts_of(answer);
  const auto& figure = charts["sections"][1]["figures"][0];
  EXPECT_EQ(figure["type"], "profile");
  EXPECT_EQ(figure["problems"], 4);
  EXPECT_EQ(figure["rows"][0].dump(), R"({"label":"linear","behind":[0,0,1]})");
}

}  // namespace
}  // namespace rubato::page
