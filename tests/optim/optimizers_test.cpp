#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <rubato/collective/kernels.hpp>
#include <rubato/torch/arrays.hpp>
#include <rubato/torch/torch_optimizer.hpp>

#include "model/shared_state.hpp"
#include "optim/lars.hpp"
#include "optim/lookahead.hpp"
#include "optim/make_optimizer.hpp"
#include "optim/sgd.hpp"
#include "support/error_of.hpp"
#include "torch/trained_arrays.hpp"

namespace rubato {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr int kSteps = 200;

// A model of three tensors, of odd sizes so that there is padding between them.
Model small_model(at::ScalarType type) {
  at::manual_seed(3);
  Model model;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
           {"weight", {5, 7}}, {"bias", {5}}, {"scale", {3}}}) {
    model.parameters.push_back({name, at::randn(shape, type).requires_grad_()});
  }
  model.set_training = [](bool) {};
  return model;
}

ParameterLayout layout_of(const SharedState& shared, std::vector<std::size_t> groups) {
  return {.layer_ends = shared.parameter_layout().ends(), .layer_groups = std::move(groups)};
}

// Parameters, and the sum of a step's gradients, as optimizers and libtorch see them.
template <class T>
struct Problem {
  Problem() : shared(small_model(at::CppTypeToScalarType<T>::value)) {
    for (const auto& [name, tensor] : shared.parameters()) {
      plain.push_back(tensor.clone().requires_grad_());
    }
    sum = at::zeros_like(shared.flat_parameters());
    sum_views = shared.parameter_layout().views(sum);
  }

  // Draws the gradients of a step of `minibatches`, for both sides.
  void draw(double minibatches) {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      sum_views[i].copy_(at::randn_like(sum_views[i]));
      plain[i].mutable_grad() = sum_views[i] * (T{1} / static_cast<T>(minibatches));
    }
  }

  Update<T> update(double minibatches, const Rates& rates) {
    const auto size = static_cast<std::size_t>(shared.flat_parameters().numel());
    return {.parameters = {shared.flat_parameters().template data_ptr<T>(), size},
            .gradient_sum = {sum.template data_ptr<T>(), size},
            .gradient_factor = T{1} / static_cast<T>(minibatches),
            .rates = rates};
  }

  double difference(std::size_t i) const {
    return (shared.parameters()[i].tensor - plain[i].detach()).abs().max().template item<double>();
  }
  bool same_bits() const {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      if (!at::equal(shared.parameters()[i].tensor, plain[i].detach())) return false;
    }
    return true;
  }

  SharedState shared;
  std::vector<at::Tensor> plain;
  at::Tensor sum;
  std::vector<at::Tensor> sum_views;
};

// Groups: the weight; the bias without decay at half the rate; the scale without momentum.
const std::vector<GroupOptions> kGroups{
    {}, {.learning_rate_factor = 0.5, .weight_decay = 0.0, .layer_wise = false}, {.momentum = 0.0}};
const std::array<double, 3> kRateFactor{1, 0.5, 1};
const std::array<double, 3> kDecay{0.01, 0, 0.01};
const std::array<double, 3> kMomentum{0.9, 0.9, 0};

TEST(SgdOfGroups, IsTorchsSgdOfGroups) {
  Workers workers(2);
  Problem<double> problem;
  const auto sgd = make_optimizer<double>({.momentum = 0.9, .weight_decay = 0.01},
                                          layout_of(problem.shared, {0, 1, 2}), kGroups);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (std::size_t i = 0; i < 3; ++i) {
    groups.emplace_back(
        std::vector<at::Tensor>{problem.plain[i]},
        std::make_unique<torch::optim::SGDOptions>(
            torch::optim::SGDOptions(1).momentum(kMomentum[i]).weight_decay(kDecay[i])));
  }
  torch::optim::SGD reference(groups, torch::optim::SGDOptions(1));
  const std::array<double, 3> rule{1, 3, 0.25};  // a rule's factors on the groups
  for (int step = 0; step < kSteps; ++step) {
    problem.draw(4);
    const double rate = 0.02 + 0.001 * (step % 5);
    for (std::size_t i = 0; i < 3; ++i) {
      reference.param_groups()[i].options().set_lr(rate * kRateFactor[i] * rule[i]);
    }
    sgd->step(problem.update(4, {.update_rate = rate, .group_factors = rule}), workers);
    reference.step();
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(problem.difference(i), 1e-12);
}

// A group's own decay as well as that of all. Without a gradient nothing but the decay is seen.
TEST(SgdOfGroups, DecayTimesTheRulesFactor) {
  Workers workers(1);
  Problem<double> problem;
  const auto sgd =
      make_optimizer<double>({.weight_decay = 0.1}, layout_of(problem.shared, {0, 1, 2}),
                             {{}, {.weight_decay = 0.5}, {.weight_decay = 0.0}});
  sgd->step(problem.update(1, {.update_rate = 0.2, .weight_decay_factor = 3}), workers);
  const std::array<double, 3> decay{0.1, 0.5, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    const at::Tensor wanted = problem.plain[i].detach() * (1 - 0.2 * 3 * decay[i]);
    EXPECT_TRUE(at::allclose(problem.shared.parameters()[i].tensor, wanted, 1e-12, 1e-14)) << i;
  }
}

std::vector<ParameterNorms> norms_of(const Problem<double>& problem) {
  std::vector<ParameterNorms> norms;
  for (std::size_t i = 0; i < 3; ++i) {
    norms.push_back({.weight_square = problem.plain[i].detach().square().sum().item<double>(),
                     .gradient_square = problem.plain[i].grad().square().sum().item<double>()});
  }
  return norms;
}

// Algorithm 1 of the paper, tensor by tensor.
TEST(Lars, IsThePapersFormula) {
  Workers workers(2);
  Problem<double> problem;
  const auto lars = make_optimizer<double>(
      {.kind = OptimizerKind::lars, .momentum = 0.9, .weight_decay = 0.01, .trust = 0.02},
      layout_of(problem.shared, {0, 1, 2}), kGroups);
  ASSERT_TRUE(lars->needs_parameter_norms());
  std::vector<at::Tensor> velocity;
  for (const at::Tensor& tensor : problem.plain) velocity.push_back(at::zeros_like(tensor));
  const at::NoGradGuard no_grad;
  for (int step = 0; step < kSteps; ++step) {
    problem.draw(3);
    if (step == 7) {
      // Nothing to adapt to.
      problem.sum_views[0].zero_();
      problem.plain[0].mutable_grad().zero_();
    }
    const double rate = 1 + 0.1 * (step % 5);
    const std::vector<ParameterNorms> norms = norms_of(problem);
    Update<double> update = problem.update(3, {.update_rate = rate});
    update.layers = norms;
    lars->step(update, workers);
    for (std::size_t i = 0; i < 3; ++i) {
      at::Tensor w = problem.plain[i].detach();
      const at::Tensor& g = problem.plain[i].grad();
      const double w_norm = w.norm().item<double>();
      const double g_norm = g.norm().item<double>();
      const bool adapts = i != 1 && g_norm > 0;
      const double local = adapts ? 0.02 * w_norm / (g_norm + kDecay[i] * w_norm) : 1;
      velocity[i] =
          kMomentum[i] * velocity[i] + rate * kRateFactor[i] * local * (g + kDecay[i] * w);
      w.sub_(velocity[i]);
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LT(problem.difference(i),
              1e-12 * (1 + problem.plain[i].detach().abs().max().item<double>()));
  }
}

// It is part of the length that the local rate goes by.
TEST(Lars, AdaptsToTheWeightDecayOfAGroup) {
  Workers workers(1);
  Problem<double> problem;
  const double decay = 0.5;
  const auto lars =
      make_optimizer<double>({.kind = OptimizerKind::lars, .weight_decay = 0.01, .trust = 0.02},
                             layout_of(problem.shared, {0, 1, 1}), {{}, {.weight_decay = decay}});
  problem.draw(1);
  const std::vector<ParameterNorms> norms = norms_of(problem);
  Update<double> update = problem.update(1, {.update_rate = 0.1});
  update.layers = norms;
  lars->step(update, workers);
  for (std::size_t i = 0; i < 3; ++i) {
    const double of_tensor = i == 0 ? 0.01 : decay;
    const at::Tensor w = problem.plain[i].detach();
    const at::Tensor& g = problem.plain[i].grad();
    const double w_norm = w.norm().item<double>();
    const double local = 0.02 * w_norm / (g.norm().item<double>() + of_tensor * w_norm);
    const at::Tensor wanted = w - 0.1 * local * (g + of_tensor * w);
    EXPECT_TRUE(at::allclose(problem.shared.parameters()[i].tensor, wanted, 1e-12, 1e-14)) << i;
  }
}

TEST(Sgd, FollowsTheRulesFactorsOnLayers) {
  Workers workers(1);
  Problem<double> problem;
  Problem<double> before;
  const auto sgd = make_optimizer<double>({}, layout_of(problem.shared, {0, 1, 2}), kGroups);
  problem.draw(1);
  const std::array<double, 3> factors{2, 3, 4};
  sgd->step(problem.update(1, {.update_rate = 0.1, .layer_factors = factors}), workers);
  // Group 1 is not layer-wise.
  const std::array<double, 3> expected{0.2, 0.05, 0.4};
  for (std::size_t i = 0; i < 3; ++i) {
    const at::Tensor wanted = before.plain[i].detach() - expected[i] * problem.plain[i].grad();
    EXPECT_TRUE(at::allclose(problem.shared.parameters()[i].tensor, wanted, 1e-12, 1e-14)) << i;
  }
}

// The same bits as the optimizer alone, at changing rates. `make` takes tensors or groups of them.
template <class T, class Make>
void expect_same_bits(const Make& make) {
  Workers workers(2);
  Problem<T> problem;
  TorchOptimizer<T> adapter(layout_of(problem.shared, {0, 0, 0}), trained_arrays(problem.shared),
                            make);
  EXPECT_FALSE(adapter.follows_sums());
  const auto reference = make(problem.plain);
  for (int step = 0; step < kSteps; ++step) {
    problem.draw(4);
    const double rate = 0.01 + 0.001 * (step % 5);
    reference->param_groups().front().options().set_lr(rate);
    adapter.step(problem.update(4, {.update_rate = rate}), workers);
    reference->step();
    ASSERT_TRUE(problem.same_bits()) << "step " << step;
  }
  EXPECT_GT((problem.plain[0].detach() -
             small_model(at::CppTypeToScalarType<T>::value).parameters[0].tensor.detach())
                .abs()
                .max()
                .template item<double>(),
            0.01)
      << "200 steps lead somewhere";
}

template <class T>
class TorchOptimizerOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(TorchOptimizerOf, Types);

TYPED_TEST(TorchOptimizerOf, HasTheBitsOfTheOptimizerAlone) {
  expect_same_bits<TypeParam>([](auto parameters) {
    return std::make_unique<torch::optim::Adam>(
        std::move(parameters),
        torch::optim::AdamOptions().betas({0.8, 0.999}).weight_decay(0.01).amsgrad(true));
  });
  expect_same_bits<TypeParam>([](auto parameters) {
    return std::make_unique<torch::optim::RMSprop>(
        std::move(parameters),
        torch::optim::RMSpropOptions().momentum(0.5).alpha(0.9).centered(true));
  });
  expect_same_bits<TypeParam>([](auto parameters) {
    return std::make_unique<torch::optim::Adagrad>(
        std::move(parameters),
        torch::optim::AdagradOptions().lr_decay(0.01).initial_accumulator_value(0.1));
  });
}

TEST(TorchOptimizer, GivesGroupsTheirOwnRates) {
  Workers workers(1);
  Problem<double> problem;
  const auto decaying = [](double rate) {
    return torch::optim::AdamWOptions(rate).weight_decay(0.02);
  };
  TorchOptimizer<double> adapter(
      layout_of(problem.shared, {0, 1, 2}), trained_arrays(problem.shared),
      [&](auto groups) {
        return std::make_unique<torch::optim::AdamW>(std::move(groups), decaying(1));
      },
      kGroups);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (std::size_t i = 0; i < 3; ++i) {
    groups.emplace_back(
        std::vector<at::Tensor>{problem.plain[i]},
        std::make_unique<torch::optim::AdamWOptions>(decaying(0.1 * kRateFactor[i])));
  }
  torch::optim::AdamW reference(groups);
  for (int step = 0; step < 10; ++step) {
    problem.draw(2);
    adapter.step(problem.update(2, {.update_rate = 0.1}), workers);
    reference.step();
  }
  EXPECT_TRUE(problem.same_bits());
}

TEST(TorchOptimizer, TakesAnOptimizerOfTheUsersOwn) {
  Workers workers(1);
  Problem<float> problem;
  TorchOptimizer<float> adapter(
      layout_of(problem.shared, {0, 0, 0}), trained_arrays(problem.shared),
      [](std::vector<torch::optim::OptimizerParamGroup> groups) {
        return std::make_unique<torch::optim::SGD>(std::move(groups), torch::optim::SGDOptions(1));
      });
  torch::optim::SGD reference(problem.plain, torch::optim::SGDOptions(0.1));
  problem.draw(1);
  adapter.step(problem.update(1, {.update_rate = 0.1}), workers);
  reference.step();
  EXPECT_TRUE(problem.same_bits());
}

TEST(MakeOptimizer, RefusesOptionsOutOfRange) {
  Problem<float> problem;
  const auto error = [&](const OptimizerOptions& options, std::vector<GroupOptions> groups) {
    return error_of([&] {
      static_cast<void>(
          make_optimizer<float>(options, layout_of(problem.shared, {0, 0, 0}), std::move(groups)));
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
