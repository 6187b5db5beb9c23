#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <rubato/libtorch/dataset.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/trainer.hpp>

#include "small_run.hpp"
#include "support.hpp"

namespace rubato {
namespace {

using test::options_of;
using test::trainer_on;

// What a single step of twelve minibatches makes of a weight.
using Expected = std::function<at::Tensor(const at::Tensor& weight, const at::Tensor& clipped)>;

void expect_step(const std::string& rule, const OptimizerOptions& optimizer,
                 const Expected& expected) {
  constexpr double kBound = 0.004;
  constexpr double kNorm = 0.02;
  for (const bool by_norm : {false, true}) {
    SCOPED_TRACE(rule + (by_norm ? " by norm" : " by value"));
    TrainOptions options = options_of(rule);
    options.epochs = 1;
    options.optimizer = optimizer;
    (by_norm ? options.clip_norm : options.clip_value) = by_norm ? kNorm : kBound;
    TorchTrainer trainer = trainer_on(Trace::constant(48), options);
    const auto before = test::copies_of(trainer.parameters());
    const auto gradients = trainer.add_observer<test::Means>();
    const StepRecord step = test::recorded(trainer)->steps[0];
    const std::vector<at::Tensor>& means = gradients->gradients.at(0);
    ASSERT_EQ(means.size(), before.size());
    double square = 0;
    double largest = 0;
    for (const at::Tensor& gradient : means) {
      square += gradient.square().sum().item<double>();
      largest = std::max(largest, gradient.abs().max().item<double>());
    }
    EXPECT_GT(largest, kBound) << "something is clipped";
    EXPECT_GT(std::sqrt(square), 2 * kNorm) << "and shortened";
    if (by_norm) {
      EXPECT_NEAR(step.gradient_norm.value(), std::sqrt(square), 1e-12) << "before it was clipped";
    }
    const double factor = kNorm / (std::sqrt(square) + 1e-6);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const at::Tensor& gradient = means[i];
      const at::Tensor clipped = by_norm ? gradient * factor : gradient.clamp(-kBound, kBound);
      EXPECT_TRUE(at::allclose(trainer.parameters()[i].tensor, expected(before[i], clipped),
                               /*rtol=*/1e-9, /*atol=*/1e-12))
          << trainer.parameters()[i].name;
    }
  }
}

// torch.nn.utils.clip_grad_value_ or clip_grad_norm_ on the mean gradient, and then the optimizer.
TEST(Clipping, BoundsTheMeanGradientOfEveryOptimizer) {
  const auto plain = [](double rate) {
    return [rate](const at::Tensor& w, const at::Tensor& g) { return w - rate * (g + 0.1 * w); };
  };
  // In the first step of the adaptive ones the means are the gradient and its square, or a part.
  const auto adaptive = [](double share) {
    return [share](const at::Tensor& w, const at::Tensor& g) {
      return w - 0.1 * g / (share * g.abs() + 1e-3);
    };
  };
  expect_step("constant", {.weight_decay = 0.1}, plain(0.1));
  expect_step("linear", {.weight_decay = 0.1}, plain(1.2));
  // The sum of twelve at the rate of one.
  expect_step("linear-momentum", {.weight_decay = 0.1}, plain(1.2));
  expect_step("constant",
              {.method = SgdOptions{.momentum_form = MomentumForm::mxnet},
               .momentum = 0.9,
               .weight_decay = 0.1},
              plain(0.1));
  // Layer-wise rates go by the norm of the gradient that is applied.
  expect_step("constant", {.method = LarsOptions{.trust = 0.02}, .weight_decay = 0.1},
              [](const at::Tensor& w, const at::Tensor& g) {
                const double w_norm = w.norm().item<double>();
                const double local = 0.02 * w_norm / (g.norm().item<double>() + 0.1 * w_norm);
                return w - 0.1 * local * (g + 0.1 * w);
              });
  expect_step("constant", {.method = AdamOptions{.epsilon = 1e-3}}, adaptive(1));
  expect_step("constant", {.method = AdagradOptions{.epsilon = 1e-3}}, adaptive(1));
  expect_step("constant", {.method = RmspropOptions{.alpha = 0.75, .epsilon = 1e-3}},
              adaptive(0.5));
}

TEST(Clipping, LeavesSmallGradientsAlone) {
  const auto train = [](std::optional<double> clip_value, std::optional<double> clip_norm = {}) {
    TrainOptions options = options_of();
    options.optimizer = {.momentum = 0.9};
    options.clip_value = clip_value;
    options.clip_norm = clip_norm;
    TorchTrainer trainer = trainer_on(Trace::constant(16), options);
    trainer.fit();
    return test::state_bytes(trainer);
  };
  EXPECT_TRUE(train(1e6) == train({}));
  EXPECT_TRUE(train({}, 1e6) == train({}));
}

// The rule's, where the user says nothing.
TEST(MomentumForm, IsTheRulesUnlessGiven) {
  const auto form = [](const std::string& rule, OptimizerOptions optimizer) {
    TrainOptions options = options_of(rule);
    options.optimizer = optimizer;
    return method_options<SgdOptions>(
               trainer_on(Trace::constant(16), options).options().optimizer.method)
        .momentum_form;
  };
  EXPECT_EQ(form("linear", {.momentum = 0.9}), std::nullopt);
  EXPECT_EQ(form("lbsgd", {.momentum = 0.9}), MomentumForm::mxnet);
  EXPECT_EQ(form("lbsgd",
                 {.method = SgdOptions{.momentum_form = MomentumForm::pytorch}, .momentum = 0.9}),
            MomentumForm::pytorch);
  EXPECT_EQ(form("lbsgd", {.method = AdamOptions{}}), std::nullopt);
  const auto weights = [](std::optional<MomentumForm> given) {
    TrainOptions options = options_of("lbsgd");
    options.optimizer = {.method = SgdOptions{.momentum_form = given}, .momentum = 0.9};
    TorchTrainer trainer = trainer_on(test::trace_of({4, 16, 8}, TraceEnd::cycle), options);
    trainer.fit();
    return test::state_bytes(trainer);
  };
  EXPECT_TRUE(weights(std::nullopt) == weights(MomentumForm::mxnet));
  EXPECT_FALSE(weights(std::nullopt) == weights(MomentumForm::pytorch));
}

}  // namespace
}  // namespace rubato
