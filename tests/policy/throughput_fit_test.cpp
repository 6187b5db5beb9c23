// The model of the time of steps: its formula, and what is found from times.

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "steps/policy/throughput.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

constexpr std::int64_t kOfHost = 4;

StepSeconds times_of(const ThroughputModel& model, const std::vector<StepShape>& shapes) {
  StepSeconds seconds;
  for (const StepShape& shape : shapes) seconds.emplace(shape, model.seconds(shape, kOfHost));
  return seconds;
}

std::vector<StepShape> many_shapes() {
  std::vector<StepShape> shapes;
  for (const std::int64_t cores : {1, 2, 3, 4, 6, 8, 16}) {
    for (const std::int64_t minibatches : {1, 2, 5, 16}) {
      shapes.push_back({.cores = cores, .minibatches = minibatches});
    }
  }
  return shapes;
}

TEST(StepShape, IsThatOfTheBusiestCore) {
  EXPECT_EQ(StepShape::of(12, 4), (StepShape{.cores = 4, .minibatches = 3}));
  EXPECT_EQ(StepShape::of(13, 4), (StepShape{.cores = 4, .minibatches = 4}));
  EXPECT_EQ(StepShape::of(3, 8), (StepShape{.cores = 3, .minibatches = 1}));
}

TEST(ThroughputModel, IsTheFormulaOfPollux) {
  const ThroughputModel model{.gradient_base = 3,
                              .gradient_slope = 1,
                              .host_base = 2,
                              .host_slope = 0.5,
                              .network_base = 10,
                              .network_slope = 1,
                              .gamma = 1};
  EXPECT_EQ(model.seconds({.cores = 1, .minibatches = 4}, kOfHost), 7);
  EXPECT_EQ(model.seconds({.cores = 2, .minibatches = 4}, kOfHost), 7 + 2);
  EXPECT_EQ(model.seconds({.cores = 4, .minibatches = 4}, kOfHost), 7 + 3);
  EXPECT_EQ(model.seconds({.cores = 5, .minibatches = 4}, kOfHost), 7 + 13);
  ThroughputModel overlapping = model;
  overlapping.gamma = 2;
  EXPECT_DOUBLE_EQ(overlapping.seconds({.cores = 4, .minibatches = 1}, kOfHost), 5);
  EXPECT_DOUBLE_EQ(overlapping.seconds({.cores = 6, .minibatches = 4}, kOfHost),
                   std::sqrt(49 + 14 * 14));
  overlapping.gamma = 10;
  overlapping.host_base = 1e300;
  EXPECT_EQ(overlapping.seconds({.cores = 2, .minibatches = 1}, kOfHost), 1e300);
}

TEST(ThroughputModel, GoesThroughNumbers) {
  const ThroughputModel model{.gradient_base = 0.1,
                              .gradient_slope = 0.2,
                              .host_base = 0.3,
                              .host_slope = 0.4,
                              .network_base = 0.5,
                              .network_slope = 0.6,
                              .gamma = 1.7};
  const auto loaded = [](const std::vector<double>& from) {
    ThroughputModel into;
    load_numbers(into, from, "the model");
    return into;
  };
  EXPECT_EQ(loaded(numbers_of(model)), model);
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    for (std::size_t i = 0; i < 7; ++i) {
      auto numbers = numbers_of(model);
      numbers[i] = wrong;
      EXPECT_NE(error_of([&] { return loaded(numbers); }), "no error");
    }
  }
  auto numbers = numbers_of(model);
  numbers[6] = 0.5;
  EXPECT_EQ(error_of([&] { return loaded(numbers); }), "the state of the model is damaged");
}

// Whatever the numbers were, the times are found again, also of steps that were not among them.
TEST(FitThroughput, FindsTheModelThatTimesAreOf) {
  for (const double gamma : {1.0, 1.5, 3.0}) {
    for (const double unit : {1e-4, 1.0, 300.0}) {
      const ThroughputModel model{.gradient_base = 0.3 * unit,
                                  .gradient_slope = 0.2 * unit,
                                  .host_base = 0.4 * unit,
                                  .host_slope = 0.1 * unit,
                                  .network_base = 2 * unit,
                                  .network_slope = 0.15 * unit,
                                  .gamma = gamma};
      const StepSeconds seconds = times_of(model, many_shapes());
      const ThroughputModel found = fit_throughput(seconds, kOfHost);
      EXPECT_LT(fit_error(found, seconds, kOfHost), 1e-5) << gamma << " " << unit;
      for (const StepShape& other :
           {StepShape{.cores = 5, .minibatches = 8}, StepShape{.cores = 12, .minibatches = 3}}) {
        EXPECT_NEAR(found.seconds(other, kOfHost) / model.seconds(other, kOfHost), 1, 1e-3)
            << gamma << " " << unit;
      }
      EXPECT_NEAR(found.gamma, gamma, 0.02 * gamma);
    }
  }
}

// By hand: one of four times is a tenth longer, in logarithms, than the model says, and one
// shorter.
TEST(FitThroughput, HasAnErrorThatIsTheRootOfAMeanSquare) {
  const ThroughputModel model{.gradient_base = 1, .gradient_slope = 2, .host_base = 3};
  StepSeconds seconds = times_of(model, {{.cores = 1, .minibatches = 1},
                                         {.cores = 1, .minibatches = 4},
                                         {.cores = 2, .minibatches = 1},
                                         {.cores = 4, .minibatches = 2}});
  EXPECT_EQ(fit_error(model, seconds, kOfHost), 0);
  seconds.begin()->second *= std::exp(0.1);
  seconds.rbegin()->second *= std::exp(-0.1);
  EXPECT_NEAR(fit_error(model, seconds, kOfHost), std::sqrt(2 * 0.01 / 4), 1e-12);
}

TEST(FitThroughput, TakesWhatIsUnexploredForFree) {
  const ThroughputModel model{.gradient_base = 1,
                              .gradient_slope = 1,
                              .host_base = 1,
                              .host_slope = 1,
                              .network_base = 4,
                              .network_slope = 1};
  const auto fitted = [&](const std::vector<StepShape>& shapes) {
    return fit_throughput(times_of(model, shapes), kOfHost);
  };
  // All of the time is that of its minibatches.
  const ThroughputModel of_one = fitted({{.cores = 1, .minibatches = 4}});
  EXPECT_EQ(of_one.gradient_base, 0);
  EXPECT_NEAR(of_one.gradient_slope, 5.0 / 4, 1e-6);
  const ThroughputModel of_a_core =
      fitted({{.cores = 1, .minibatches = 1}, {.cores = 1, .minibatches = 3}});
  EXPECT_NEAR(of_a_core.gradient_base, 1, 1e-4);
  EXPECT_NEAR(of_a_core.gradient_slope, 1, 1e-4);
  EXPECT_EQ(of_a_core.host_base, 0);
  EXPECT_EQ(of_a_core.network_base, 0);
  EXPECT_EQ(of_a_core.gamma, 1);
  // Two cores say nothing of three.
  const ThroughputModel of_two = fitted({{.cores = 1, .minibatches = 1},
                                         {.cores = 1, .minibatches = 3},
                                         {.cores = 2, .minibatches = 1}});
  EXPECT_NEAR(of_two.host_base, 1, 1e-3);
  EXPECT_EQ(of_two.host_slope, 0);
  EXPECT_EQ(of_two.network_base, 0);
  const ThroughputModel of_one_and_four = fitted({{.cores = 1, .minibatches = 1},
                                                  {.cores = 1, .minibatches = 3},
                                                  {.cores = 4, .minibatches = 1}});
  EXPECT_NEAR(of_one_and_four.host_base, 1 + 2, 0.01) << "how much is of each core, nobody knows";
  EXPECT_EQ(of_one_and_four.host_slope, 0);
  // What may be of both is of the gradient: more cores are believed to cost nothing.
  const ThroughputModel of_four =
      fitted({{.cores = 4, .minibatches = 1}, {.cores = 4, .minibatches = 3}});
  EXPECT_NEAR(of_four.gradient_base, 1 + 3, 0.01);
  EXPECT_NEAR(of_four.host_base, 0, 0.01);
}

TEST(FitThroughput, MakesTheBestOfTimesThatAreOfNoModel) {
  StepSeconds seconds =
      times_of({.gradient_base = 1, .gradient_slope = 1, .host_base = 2}, many_shapes());
  int i = 0;
  for (auto& [shape, of_shape] : seconds) of_shape *= i++ % 2 == 0 ? 1.1 : 1 / 1.1;
  const ThroughputModel found = fit_throughput(seconds, kOfHost);
  EXPECT_GT(fit_error(found, seconds, kOfHost), 0.05);
  EXPECT_LT(fit_error(found, seconds, kOfHost), std::log(1.1));
}

}  // namespace
}  // namespace rubato
