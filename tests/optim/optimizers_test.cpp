#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "loop/optim/make_optimizer.hpp"
#include "loop/optim/sgd.hpp"
#include "optim/flat_problem.hpp"
#include "support/error_of.hpp"

namespace rubato {
namespace {

using test::all_close;
using test::error_of;
using test::square_sum;
using testing::HasSubstr;

// A weight, a bias and a scale, of odd sizes so that there is padding between them.
struct SmallProblem : test::FlatProblem {
  SmallProblem() : FlatProblem({35, 5, 3}) {}

  Update<double> update(double minibatches, const Rates& rates) {
    return {.parameters = parameters,
            .gradient_sum = sum,
            .gradient_factor = 1 / minibatches,
            .rates = rates};
  }
};

// Groups: the weight; the bias without decay at half the rate; the scale without momentum.
const std::vector<GroupOptions> kGroups{
    {}, {.learning_rate_factor = 0.5, .weight_decay = 0.0, .layer_wise = false}, {.momentum = 0.0}};
const std::array<double, 3> kRateFactor{1, 0.5, 1};
const std::array<double, 3> kDecay{0.01, 0, 0.01};
const std::array<double, 3> kMomentum{0.9, 0.9, 0};

// A group's own decay as well as that of all. Without a gradient nothing but the decay is seen.
TEST(SgdOfGroups, DecayTimesTheRulesFactor) {
  Workers workers(1);
  SmallProblem problem;
  SmallProblem before;
  const auto sgd = make_optimizer<double>({.weight_decay = 0.1}, problem.layout({0, 1, 2}),
                                          {{}, {.weight_decay = 0.5}, {.weight_decay = 0.0}});
  sgd->step(problem.update(1, {.update_rate = 0.2, .weight_decay_factor = 3}), workers);
  const std::array<double, 3> decay{0.1, 0.5, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<double> wanted = before.copy_of(i);
    for (double& value : wanted) value *= 1 - 0.2 * 3 * decay[i];
    EXPECT_TRUE(all_close(problem.values(i), wanted, 1e-12, 1e-14)) << i;
  }
}

// Of parameters that `of` has, and the mean gradient of `minibatches`.
std::vector<ParameterNorms> norms_of(SmallProblem& of, double minibatches) {
  std::vector<ParameterNorms> norms;
  for (std::size_t i = 0; i < 3; ++i) {
    norms.push_back({.weight_square = square_sum(of.values(i)),
                     .gradient_square = square_sum(of.sum_of(i)) / (minibatches * minibatches)});
  }
  return norms;
}

// What LARS multiplies the rate of a tensor by.
double local_of(const ParameterNorms& norms, double trust, double decay) {
  const double weight = std::sqrt(norms.weight_square);
  return trust * weight / (std::sqrt(norms.gradient_square) + decay * weight);
}

// Algorithm 1 of the paper, tensor by tensor.
TEST(Lars, IsThePapersFormula) {
  Workers workers(2);
  SmallProblem problem;
  SmallProblem expected;
  const auto lars = make_optimizer<double>(
      {.kind = OptimizerKind::lars, .momentum = 0.9, .weight_decay = 0.01, .trust = 0.02},
      problem.layout({0, 1, 2}), kGroups);
  ASSERT_TRUE(lars->needs_parameter_norms());
  std::vector<double> velocity(expected.parameters.size());
  for (int step = 0; step < 200; ++step) {
    problem.draw();
    if (step == 7) {
      // Nothing to adapt to.
      for (double& value : problem.sum_of(0)) value = 0;
    }
    expected.sum = problem.sum;
    const double rate = 1 + 0.1 * (step % 5);
    const std::vector<ParameterNorms> norms = norms_of(expected, 3);
    Update<double> update = problem.update(3, {.update_rate = rate});
    update.layers = norms;
    lars->step(update, workers);
    for (std::size_t i = 0; i < 3; ++i) {
      const bool adapts = i != 1 && norms[i].gradient_square > 0;
      const double local = adapts ? local_of(norms[i], 0.02, kDecay[i]) : 1;
      for (std::size_t k = expected.begins[i]; k < expected.begins[i] + expected.sizes[i]; ++k) {
        double& w = expected.parameters[k];
        velocity[k] = kMomentum[i] * velocity[k] +
                      rate * kRateFactor[i] * local * (expected.sum[k] / 3 + kDecay[i] * w);
        w -= velocity[k];
      }
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<double> wanted = expected.copy_of(i);
    double largest = 0;
    for (const double value : wanted) largest = std::max(largest, std::abs(value));
    EXPECT_TRUE(all_close(problem.values(i), wanted, 0, 1e-12 * (1 + largest))) << i;
  }
}

// It is part of the length that the local rate goes by.
TEST(Lars, AdaptsToTheWeightDecayOfAGroup) {
  Workers workers(1);
  SmallProblem problem;
  const double decay = 0.5;
  const auto lars =
      make_optimizer<double>({.kind = OptimizerKind::lars, .weight_decay = 0.01, .trust = 0.02},
                             problem.layout({0, 1, 1}), {{}, {.weight_decay = decay}});
  problem.draw();
  SmallProblem before = problem;
  const std::vector<ParameterNorms> norms = norms_of(problem, 1);
  Update<double> update = problem.update(1, {.update_rate = 0.1});
  update.layers = norms;
  lars->step(update, workers);
  for (std::size_t i = 0; i < 3; ++i) {
    const double of_tensor = i == 0 ? 0.01 : decay;
    const double local = local_of(norms[i], 0.02, of_tensor);
    std::vector<double> wanted = before.copy_of(i);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      wanted[k] -= 0.1 * local * (before.sum_of(i)[k] + of_tensor * wanted[k]);
    }
    EXPECT_TRUE(all_close(problem.values(i), wanted, 1e-12, 1e-14)) << i;
  }
}

TEST(Sgd, FollowsTheRulesFactorsOnLayers) {
  Workers workers(1);
  SmallProblem problem;
  const auto sgd = make_optimizer<double>({}, problem.layout({0, 1, 2}), kGroups);
  problem.draw();
  SmallProblem before = problem;
  const std::array<double, 3> factors{2, 3, 4};
  sgd->step(problem.update(1, {.update_rate = 0.1, .layer_factors = factors}), workers);
  // Group 1 is not layer-wise.
  const std::array<double, 3> expected{0.2, 0.05, 0.4};
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<double> wanted = before.copy_of(i);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      wanted[k] -= expected[i] * before.sum_of(i)[k];
    }
    EXPECT_TRUE(all_close(problem.values(i), wanted, 1e-12, 1e-14)) << i;
  }
}

TEST(MakeOptimizer, RefusesOptionsOutOfRange) {
  const auto error = [&](const OptimizerOptions& options, std::vector<GroupOptions> groups) {
    return error_of([&] {
      static_cast<void>(
          make_optimizer<float>(options, SmallProblem().layout({0, 0, 0}), std::move(groups)));
    });
  };
  EXPECT_THAT(error({.kind = OptimizerKind::adam, .beta1 = 1}, {}), HasSubstr("beta1 1"));
  EXPECT_THAT(error({}, {{}, {.weight_decay = -1}}), HasSubstr("weight decay -1"));
  EXPECT_THAT(error({}, {{.momentum = 1}}), HasSubstr("momentum 1"));
  EXPECT_THAT(error({}, {{.learning_rate_factor = -1}}), HasSubstr("learning-rate factor -1"));
}

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
        std::make_unique<Sgd<double>>(ParameterLayout::whole(parameters.size()),
                                      SgdOptions{.momentum = 0.9, .nesterov = true}),
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
    EXPECT_THAT(after[i], testing::Pointwise(testing::DoubleNear(1e-9), expected)) << i;
    EXPECT_THAT(before[i], testing::Pointwise(testing::DoubleNear(1e-9), papers[i])) << i;
  }
}

TEST(Lookahead, RefusesOptionsOutOfRange) {
  const auto error = [](const LookaheadOptions& options) {
    return error_of([&] {
      Lookahead<float>(std::make_unique<Sgd<float>>(ParameterLayout::whole(1), SgdOptions{}),
                       options);
    });
  };
  EXPECT_THAT(error({.k = 0}), HasSubstr("k 0"));
  EXPECT_THAT(error({.alpha = 0}), HasSubstr("alpha 0"));
  EXPECT_THAT(error({.alpha = 1.5}), HasSubstr("alpha 1.5"));
}

}  // namespace
}  // namespace rubato
