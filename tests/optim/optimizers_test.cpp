#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

class Reference : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(RUBATO_SHARED_DIR "/reference/schedules.json");
    if (!file) GTEST_SKIP() << "no " RUBATO_SHARED_DIR "/reference/schedules.json here";
    run_ = nlohmann::json::parse(file).at("lookahead");
  }

  // The parameters after each step.
  std::vector<std::vector<double>> lookahead(LookaheadStart start) const {
    Workers workers(1);
    auto parameters = run_.at("initial").get<std::vector<double>>();
    Lookahead<double> optimizer(
        make_optimizer<double>({.method = SgdOptions{.nesterov = true}, .momentum = 0.9},
                               ParameterLayout::whole(parameters.size()), {}),
        {.k = run_.at("k"), .alpha = run_.at("alpha"), .start = start});
    std::vector<std::vector<double>> course;
    for (const auto& step : run_.at("steps")) {
      const auto gradient = step.at("grad").get<std::vector<double>>();
      optimizer.step(
          {.parameters = parameters, .gradient_sum = gradient, .rates = {.update_rate = 0.1}},
          workers);
      course.push_back(parameters);
    }
    return course;
  }

  nlohmann::json run_;
};

TEST_F(Reference, LookaheadOfBothStarts) {
  const auto after = lookahead(LookaheadStart::after_first_update);
  const auto before = lookahead(LookaheadStart::before_first_update);
  const auto papers = run_.at("paper_params").get<std::vector<std::vector<double>>>();
  ASSERT_FALSE(after.empty());
  ASSERT_EQ(after.size(), run_.at("steps").size());
  ASSERT_EQ(papers.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto expected = run_.at("steps").at(i).at("param").get<std::vector<double>>();
    EXPECT_THAT(after[i], Pointwise(DoubleNear(1e-9), expected)) << i;
    EXPECT_THAT(before[i], Pointwise(DoubleNear(1e-9), papers[i])) << i;
  }
}

TEST(Lookahead, RefusesOptionsOutOfRange) {
  const auto error = [](const LookaheadOptions& options) {
    return error_of([&] {
      Lookahead<float>(make_optimizer<float>({}, ParameterLayout::whole(1), {}), options);
    });
  };
  EXPECT_THAT(error({.k = 0}), HasSubstr("k 0"));
  EXPECT_THAT(error({.alpha = 0}), HasSubstr("alpha 0"));
  EXPECT_THAT(error({.alpha = 1.5}), HasSubstr("alpha 1.5"));
}

}  // namespace
}  // namespace rubato
