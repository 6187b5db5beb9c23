// Tables over all there are: types of a state's tensors, operators that stay in float32, modules
// with running statistics, models.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>

#include "libtorch/model/dispatch_scopes.hpp"
#include "libtorch/model/shared_state.hpp"
#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace nn = torch::nn;

using Operator = std::function<at::Tensor(const at::Tensor& x)>;

// Of a matrix of positive numbers below 1, its rows' classes and images.
std::map<std::string, Operator> left_in_float() {
  const at::Tensor y = at::rand({6, 5}) + 0.1;
  const at::Tensor other = at::rand({6, 5});
  const at::Tensor classes = at::arange(6).remainder(5);
  const at::Tensor signs = classes.remainder(2) * 2 - 1;
  const auto images = [](const at::Tensor& x) { return x.reshape({1, 5, 2, 3}).log_softmax(1); };
  return {
      {"binary_cross_entropy_with_logits",
       [=](const at::Tensor& x) { return at::binary_cross_entropy_with_logits(x, y); }},
      {"cosine_embedding_loss",
       [=](const at::Tensor& x) { return at::cosine_embedding_loss(x, y, signs); }},
      {"cosine_similarity", [=](const at::Tensor& x) { return at::cosine_similarity(x, y); }},
      {"cross_entropy_loss",
       [=](const at::Tensor& x) { return at::cross_entropy_loss(x, classes); }},
      {"cumprod", [](const at::Tensor& x) { return at::cumprod(x, 1); }},
      {"cumsum", [](const at::Tensor& x) { return at::cumsum(x, 1); }},
      {"dist", [=](const at::Tensor& x) { return at::dist(x, y); }},
      {"exp", [](const at::Tensor& x) { return at::exp(x); }},
      {"expm1", [](const at::Tensor& x) { return at::expm1(x); }},
      {"group_norm",
       [](const at::Tensor& x) {
         return at::group_norm(x.reshape({3, 2, 5}), 2);
       }},
      {"hinge_embedding_loss",
       [=](const at::Tensor& x) {
         return at::hinge_embedding_loss(x, signs.unsqueeze(1).expand({6, 5}));
       }},
      {"huber_loss", [=](const at::Tensor& x) { return at::huber_loss(x, y); }},
      {"kl_div", [=](const at::Tensor& x) { return at::kl_div(x, y); }},
      {"l1_loss", [=](const at::Tensor& x) { return at::l1_loss(x, y); }},
      {"layer_norm", [](const at::Tensor& x) { return at::layer_norm(x, {5}); }},
      {"log", [](const at::Tensor& x) { return at::log(x); }},
      {"log10", [](const at::Tensor& x) { return at::log10(x); }},
      {"log1p", [](const at::Tensor& x) { return at::log1p(x); }},
      {"log2", [](const at::Tensor& x) { return at::log2(x); }},
      {"log_softmax", [](const at::Tensor& x) { return at::log_softmax(x, 1); }},
      {"logsumexp", [](const at::Tensor& x) { return at::logsumexp(x, 1); }},
      {"margin_ranking_loss",
       [=](const at::Tensor& x) {
         return at::margin_ranking_loss(x, y, signs.unsqueeze(1).expand({6, 5}));
       }},
      {"mse_loss", [=](const at::Tensor& x) { return at::mse_loss(x, y); }},
      {"multi_margin_loss", [=](const at::Tensor& x) { return at::multi_margin_loss(x, classes); }},
      {"nll_loss", [=](const at::Tensor& x) { return at::nll_loss(x, classes); }},
      {"nll_loss2d",
       [=](const at::Tensor& x) {
         return at::nll_loss2d(images(x), classes.reshape({1, 2, 3}));
       }},
      {"nll_loss_nd", [=](const at::Tensor& x) { return at::nll_loss_nd(x, classes); }},
      {"norm", [](const at::Tensor& x) { return at::norm(x); }},
      {"pow", [](const at::Tensor& x) { return at::pow(x, 1.5); }},
      {"prod", [](const at::Tensor& x) { return at::prod(x, 1); }},
      {"reciprocal", [](const at::Tensor& x) { return at::reciprocal(x); }},
      {"rsqrt", [](const at::Tensor& x) { return at::rsqrt(x); }},
      {"smooth_l1_loss", [=](const at::Tensor& x) { return at::smooth_l1_loss(x, y); }},
      {"softmax", [](const at::Tensor& x) { return at::softmax(x, 1); }},
      {"softplus", [](const at::Tensor& x) { return at::softplus(x); }},
      {"sum", [](const at::Tensor& x) { return at::sum(x); }},
      {"triplet_margin_loss",
       [=](const at::Tensor& x) { return at::triplet_margin_loss(x, y, other, 5); }}};
}

bool has_halves_only(const at::Tensor& tensor) {
  return at::equal(tensor, tensor.to(at::kHalf).to(at::kFloat));
}

TEST(HalfStorageOfEveryOperator, RoundsWhatAutocastDoesNotLeaveInFloat) {
  at::manual_seed(5);
  const at::Tensor x = at::rand({6, 5}) + 0.1;
  const auto left = left_in_float();
  EXPECT_EQ(left.size(), 37U);
  for (const auto& [name, compute] : left) {
    const at::Tensor expected = compute(x);
    ASSERT_FALSE(has_halves_only(expected)) << name << ": the test would see nothing";
    const HalfStorage storage(true);
    EXPECT_TRUE(at::equal(compute(x), expected)) << name;
  }
  const at::Tensor divisor = x + 1;
  const std::map<std::string, Operator> rounded{
      {"add", [=](const at::Tensor& t) { return at::add(t, x); }},
      {"mul", [=](const at::Tensor& t) { return at::mul(t, x); }},
      {"div", [=](const at::Tensor& t) { return at::div(t, divisor); }},
      {"mean", [](const at::Tensor& t) { return at::mean(t, 1); }},
      {"sqrt", [](const at::Tensor& t) { return at::sqrt(t); }},
      {"sigmoid", [](const at::Tensor& t) { return at::sigmoid(t); }},
      {"relu", [](const at::Tensor& t) { return at::relu(t); }},
      {"exp2", [](const at::Tensor& t) { return at::exp2(t); }},
      {"mm", [](const at::Tensor& t) { return at::mm(t, t.t()); }},
      {"conv1d",
       [](const at::Tensor& t) {
         return at::conv1d(t.unsqueeze(1), at::ones({1, 1, 2}));
       }},
      // Several tensors, and a list of them.
      {"max", [](const at::Tensor& t) { return std::get<0>(at::max(t, 1)); }},
      {"var_mean", [](const at::Tensor& t) { return std::get<1>(at::var_mean(t)); }},
      {"_foreach_mul", [](const at::Tensor& t) {
         return at::_foreach_mul({t, t}, 3.1)[1];
       }}};
  for (const auto& [name, compute] : rounded) {
    const at::Tensor expected = compute(x).to(at::kHalf).to(at::kFloat);
    ASSERT_FALSE(has_halves_only(compute(x))) << name << ": the test would see nothing";
    const HalfStorage storage(true);
    EXPECT_TRUE(at::equal(compute(x), expected)) << name;
  }
  const HalfStorage off(false);
  EXPECT_FALSE(has_halves_only(at::mul(x, x)));
}

std::vector<std::string> texts_of(const std::vector<BufferRule>& rules) {
  std::vector<std::string> texts;
  texts.reserve(rules.size());
  for (const BufferRule& rule : rules) {
    texts.push_back(rule.buffer +
                    (rule.combination == BufferCombination::average
                         ? " averages " + (rule.momentum ? std::to_string(*rule.momentum) : "all") +
                               " by " + rule.counter
                     : rule.combination == BufferCombination::sum ? " sums"
                                                                  : " otherwise"));
  }
  return texts;
}

std::vector<std::string> average_rules(const std::string& prefix, const std::string& momentum) {
  const std::string how = " averages " + momentum + " by " + prefix + "num_batches_tracked";
  return {prefix + "running_mean" + how, prefix + "running_var" + how,
          prefix + "num_batches_tracked sums"};
}

// A module with another in it, and in that one more.
template <class Norm>
std::vector<std::string> rules_of_nested(Norm norm) {
  const auto inner = std::make_shared<nn::Module>();
  inner->register_module("norm", norm);
  nn::Module outer;
  outer.register_module("linear", nn::Linear(2, 2));
  outer.register_module("inner", inner);
  return texts_of(buffer_rules_of(outer));
}

TEST(BufferRulesOf, EveryNormalisation) {
  const auto instance = [] { return nn::InstanceNorm1dOptions(3).momentum(0.25); };
  const auto nested = average_rules("inner.norm.", "0.250000");
  EXPECT_EQ(rules_of_nested(nn::BatchNorm1d(nn::BatchNormOptions(3).momentum(0.25))), nested);
  EXPECT_EQ(rules_of_nested(nn::BatchNorm2d(nn::BatchNormOptions(3).momentum(0.25))), nested);
  EXPECT_EQ(rules_of_nested(nn::BatchNorm3d(nn::BatchNormOptions(3).momentum(0.25))), nested);
  EXPECT_EQ(rules_of_nested(nn::InstanceNorm1d(instance().track_running_stats(true))), nested);
  EXPECT_EQ(rules_of_nested(nn::InstanceNorm2d(instance().track_running_stats(true))), nested);
  EXPECT_EQ(rules_of_nested(nn::InstanceNorm3d(instance().track_running_stats(true))), nested);
  EXPECT_EQ(rules_of_nested(nn::BatchNorm2d(nn::BatchNormOptions(3).momentum(c10::nullopt))),
            average_rules("inner.norm.", "all"));
  EXPECT_THAT(rules_of_nested(nn::InstanceNorm2d(instance())), IsEmpty());
  EXPECT_THAT(rules_of_nested(nn::BatchNorm2d(nn::BatchNormOptions(3).track_running_stats(false))),
              IsEmpty());
  // The module itself.
  EXPECT_EQ(texts_of(buffer_rules_of(*nn::BatchNorm1d(3))), average_rules("", "0.100000"));
}

// With a momentum that is a number of either kind, None, or no number at all.
TEST(BufferRulesOf, TorchScript) {
  const auto norm = [](const c10::TypePtr& type, const c10::IValue& momentum, bool counts) {
    torch::jit::Module module("Norm");
    if (type != nullptr) module.register_attribute("momentum", type, momentum);
    module.register_buffer("running_mean", at::zeros({2}));
    module.register_buffer("running_var", at::ones({2}));
    if (counts) module.register_buffer("num_batches_tracked", at::zeros({}, at::kLong));
    module.define("def forward(self, x):\n  return x\n");
    return module;
  };
  const auto rules = [](const torch::jit::Module& module) {
    return texts_of(make_model(module).buffer_rules);
  };
  const auto of_float = norm(c10::FloatType::get(), 0.25, true);
  EXPECT_EQ(rules(of_float), average_rules("", "0.250000"));
  torch::jit::Module outer("Outer");
  outer.register_module("norm", of_float);
  outer.define("def forward(self, x):\n  return self.norm.forward(x)\n");
  EXPECT_EQ(rules(outer), average_rules("norm.", "0.250000"));
  EXPECT_EQ(rules(norm(c10::IntType::get(), 1, true)), average_rules("", "1.000000"));
  EXPECT_EQ(rules(norm(c10::NoneType::get(), c10::IValue(), true)), average_rules("", "all"));
  EXPECT_THAT(rules(norm(c10::StringType::get(), "much", true)), IsEmpty());
  EXPECT_THAT(rules(norm(nullptr, {}, true)), IsEmpty());
  EXPECT_THAT(
      rules(norm(c10::FloatType::get(), 0.25, false)),
      ElementsAre("running_mean averages 0.250000 by ", "running_var averages 0.250000 by "));
}

TEST(ScriptModel, IsSwitchedBetweenTrainingAndEvaluation) {
  torch::jit::Module module("Switched");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", at::ones({2}).requires_grad_(), false);
  module.define(
      "def forward(self, x):\n  if self.training:\n    return x * 2\n  return x * self.weight\n");
  const Model model = script_factory(module)();
  model.set_training(false);
  EXPECT_TRUE(at::equal(model.forward(at::ones({2})).detach(), at::ones({2})));
  model.set_training(true);
  EXPECT_TRUE(at::equal(model.forward(at::ones({2})), at::full({2}, 2.0)));
}

// What a rule says that its buffer cannot be.
TEST(BufferRulesOf, WhatCannotBeAreErrors) {
  const auto error = [](const BufferRule& rule) {
    Model model{.forward = {},
                .set_training = {},
                .parameters = {{"weight", at::ones({2}).requires_grad_()}},
                .buffers = {{"mean", at::zeros({2})},
                            {"count", at::zeros({}, at::kLong)},
                            {"small", at::zeros({}, at::kInt)},
                            {"counts", at::zeros({2}, at::kLong)},
                            {"number", at::zeros({1})}},
                .buffer_rules = {rule}};
    return error_of([&] { const SharedState state(model); });
  };
  using enum BufferCombination;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string no_mean =
      "the rule of buffer 'count': integers have no mean; accepted: sum, first";
  EXPECT_EQ(error({.buffer = "count", .combination = mean}), no_mean);
  EXPECT_EQ(error({.buffer = "count", .combination = average, .momentum = 0.1}), no_mean);
  EXPECT_EQ(error({.buffer = "count", .combination = first}), "no error");
  EXPECT_EQ(error({.buffer = "count", .combination = sum}), "no error");
  EXPECT_EQ(error({.buffer = "mean", .momentum = kInfinity}),
            "the rule of buffer 'mean': its momentum must be finite");
  EXPECT_EQ(error({.buffer = "mean", .combination = average}),
            "the rule of buffer 'mean': an average without momentum needs a counter");
  const auto by = [&](const std::string& counter) {
    return error({.buffer = "mean", .combination = average, .counter = counter});
  };
  EXPECT_EQ(by("count"), "no error");
  EXPECT_EQ(by("number"), "no error");
  const std::string no_counter =
      "the rule of buffer 'mean': its counter must be one int64 or floating-point number";
  EXPECT_EQ(by("counts"), no_counter);
  EXPECT_EQ(by("small"), no_counter);
  EXPECT_EQ(by("mean"), no_counter);
  EXPECT_EQ(by("nobody"), "a buffer rule names 'nobody', which is not a buffer of the model");
}

// Layer by layer, from the tensors by their names.
TEST(BuiltinModels, ComputeTheirNetworks) {
  const at::NoGradGuard no_grad;
  const ImageShape shape{.channels = 3, .height = 17, .width = 18, .classes = 7};
  using Tensors = std::map<std::string, at::Tensor>;
  const auto linear = [](const Tensors& t, const std::string& name, const at::Tensor& x) {
    return at::linear(x, t.at(name + ".weight"), t.at(name + ".bias"));
  };
  const auto normalised = [](const Tensors& t, const std::string& name, const at::Tensor& x) {
    return at::batch_norm(x, t.at(name + ".weight"), t.at(name + ".bias"),
                          t.at(name + ".running_mean"), t.at(name + ".running_var"), false, 0.1,
                          1e-5, false);
  };
  const auto convolved = [&](const Tensors& t, int number, const at::Tensor& x) {
    const std::string conv = "conv." + std::to_string(number);
    const std::string norm = "conv." + std::to_string(number + 1);
    return at::relu(
        normalised(t, norm, at::conv2d(x, t.at(conv + ".weight"), t.at(conv + ".bias"))));
  };
  const std::map<std::string, std::function<at::Tensor(const Tensors&, at::Tensor)>> networks{
      {"softmax",
       [&](const Tensors& t, const at::Tensor& x) { return linear(t, "linear", x.flatten(1)); }},
      {"mlp",
       [&](const Tensors& t, at::Tensor x) {
         x = at::relu(linear(t, "linear1", x.flatten(1)));
         return linear(t, "linear3", at::relu(linear(t, "linear2", x)));
       }},
      {"toy-net", [&](const Tensors& t, at::Tensor x) {
         x = at::max_pool2d(convolved(t, 3, convolved(t, 0, x)), {2, 2});
         x = at::max_pool2d(convolved(t, 10, convolved(t, 7, x)), {2, 2});
         x = at::relu(normalised(t, "dense.2", linear(t, "dense.1", x.flatten(1))));
         return linear(t, "dense.4", x);
       }}};
  for (const auto& [name, network] : networks) {
    SCOPED_TRACE(name);
    at::manual_seed(2);
    const Model model = builtin_model(name, shape)();
    Tensors tensors;
    for (const auto* all : {&model.parameters, &model.buffers}) {
      for (const NamedTensor& named : *all) {
        if (named.tensor.is_floating_point() && named.tensor.dim() == 1) {
          named.tensor.uniform_(0.5, 1.5);
        }
        tensors[named.name] = named.tensor;
      }
    }
    const at::Tensor x = at::randn({2, 3, 17, 18});
    model.set_training(false);
    EXPECT_TRUE(
        at::allclose(model.forward(x), at::log_softmax(network(tensors, x), 1), 1e-4, 1e-4));
  }
}

}  // namespace
}  // namespace rubato
