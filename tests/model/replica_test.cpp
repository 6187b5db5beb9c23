#include "libtorch/model/replica.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>

#include "support/error_of.hpp"
#include "support/matchers.hpp"

namespace rubato {
namespace {

namespace nn = torch::nn;

// A linear layer, batch normalisation and a frozen factor, with a tied weight: the output layer
// uses the first one's again.
class Net : public nn::Module {
 public:
  explicit Net(std::int64_t width)
      : linear_(nn::LinearOptions(width, width).bias(false)), norm_(width) {
    register_module("linear", linear_);
    register_module("norm", norm_);
    factor_ = register_parameter("factor", at::full({width}, 2.0), /*requires_grad=*/false);
  }

  at::Tensor forward(const at::Tensor& x) {
    return at::linear(norm_(linear_(x)) * factor_, linear_->weight);
  }

 private:
  nn::Linear linear_;
  nn::BatchNorm1d norm_;
  at::Tensor factor_;
};

constexpr std::int64_t kWidth = 4;

// A shared state, and replicas of it whose modules the test can look into.
struct Replicas {
  Replicas()
      : modules{std::make_shared<Net>(kWidth), std::make_shared<Net>(kWidth)},
        state(make_model(modules[0])),
        first(make_model(modules[0]), state),
        second(make_model(modules[1]), state) {}

  std::vector<std::shared_ptr<Net>> modules;
  SharedState state;
  Replica first;
  Replica second;
};

// A gradient buffer, as the executor's pool leases them, and its views by the parameter layout.
struct Gradients {
  explicit Gradients(const SharedState& state)
      : flat(at::zeros({state.parameter_layout().size()})),
        views(state.parameter_layout().views(flat.data_ptr())) {}

  at::Tensor flat;
  std::vector<at::Tensor> views;
};

at::Tensor input(std::int64_t rows = 6) {
  return at::arange(rows * kWidth, at::kFloat).reshape({rows, kWidth}).sin();
}

void substep(Replica& replica, const Gradients& gradients, const at::Tensor& x) {
  replica.begin(gradients.views);
  replica.forward(x).square().sum().backward();
}

TEST(Replica, SeesAnUpdateOfTheSharedParametersWithoutACopy) {
  Replicas replicas;
  EXPECT_TRUE(at::equal(replicas.first.forward(input()), replicas.second.forward(input())));
  {
    const at::NoGradGuard no_grad;
    replicas.state.flat_parameters().mul_(1.5);
  }
  for (const auto& module : replicas.modules) {
    const auto parameters = module->named_parameters();
    for (const auto& [name, shared] : replicas.state.parameters()) {
      EXPECT_EQ(parameters[name].data_ptr(), shared.data_ptr()) << name;
      EXPECT_TRUE(at::equal(parameters[name], shared)) << name;
    }
  }
  EXPECT_TRUE(at::equal(replicas.first.forward(input()), replicas.second.forward(input())));
}

TEST(Replica, TakesItsValuesFromTheStateNotFromItsModel) {
  Replicas replicas;
  // The second module was made with initial values of its own.
  EXPECT_TRUE(at::equal(replicas.modules[0]->named_parameters()["linear.weight"],
                        replicas.modules[1]->named_parameters()["linear.weight"]));
  for (const bool training : {true, false}) {
    replicas.first.set_training(training);
    replicas.second.set_training(training);
    EXPECT_TRUE(at::equal(replicas.first.forward(input()), replicas.second.forward(input())));
  }
}

TEST(Replica, AddsGradientsToTheViewsOfTheSubstep) {
  Replicas replicas;
  // What libtorch puts into gradients of its own.
  const auto plain = std::make_shared<Net>(kWidth);
  {
    const at::NoGradGuard no_grad;
    const auto weight = replicas.modules[0]->named_parameters()["linear.weight"];
    plain->named_parameters()["linear.weight"].copy_(weight);
  }
  plain->forward(input()).square().sum().backward();

  Gradients gradients(replicas.state);
  gradients.views[0].fill_(100);  // kept: a leaf may be summed in place
  Gradients untouched(replicas.state);
  substep(replicas.second, untouched, input());
  const at::Tensor before = untouched.flat.clone();
  substep(replicas.first, gradients, input());
  replicas.first.check_gradients(gradients.views);

  const auto expected = plain->named_parameters();
  EXPECT_TRUE(at::allclose(gradients.views[0], expected["linear.weight"].grad() + 100));
  EXPECT_TRUE(at::equal(gradients.views[1], expected["norm.weight"].grad()));
  EXPECT_TRUE(at::equal(gradients.views[2], expected["norm.bias"].grad()));
  EXPECT_GT(gradients.views[1].abs().sum().item<float>(), 0);
  EXPECT_TRUE(at::equal(untouched.flat, before)) << "another replica's buffer";
}

TEST(Replica, FollowsToAnotherGradientBuffer) {
  Replicas replicas;
  Gradients one(replicas.state);
  Gradients two(replicas.state);
  substep(replicas.first, one, input());
  const at::Tensor of_one = one.flat.clone();
  substep(replicas.first, two, input());
  replicas.first.check_gradients(two.views);
  EXPECT_TRUE(at::equal(one.flat, of_one));
  EXPECT_TRUE(at::equal(two.flat, of_one)) << "the same substep again, from zero";
}

TEST(Replica, LeavesTheGradientOfAnUnusedParameterAtZero) {
  const at::Tensor used = at::ones({2}).requires_grad_();
  const at::Tensor unused = at::ones({3}).requires_grad_();
  const Model model{.forward = [used](const at::Tensor& x) { return x * used; },
                    .set_training = [](bool) {},
                    .parameters = {{"used", used}, {"unused", unused}},
                    .buffers = {}};
  const SharedState state(model);
  Replica replica(model, state);
  const Gradients gradients(state);
  substep(replica, gradients, at::ones({2}));
  replica.check_gradients(gradients.views);
  EXPECT_TRUE(gradients.views[0].eq(2).all().item<bool>());
  EXPECT_TRUE(gradients.views[1].eq(0).all().item<bool>());
}

TEST(Replica, RefusesGradientsThatSomethingElseResets) {
  Replicas replicas;
  const Gradients gradients(replicas.state);
  const auto reset_by = [&](bool before_backward) {
    replicas.first.begin(gradients.views);
    const at::Tensor loss = replicas.first.forward(input()).sum();
    if (before_backward) replicas.modules[0]->zero_grad(/*set_to_none=*/true);
    loss.backward();
    if (!before_backward) replicas.modules[0]->zero_grad(/*set_to_none=*/true);
    replicas.first.check_gradients(gradients.views);
  };
  for (const bool before_backward : {true, false}) {
    EXPECT_THAT(error_of([&] { reset_by(before_backward); }),
                StartsWith("the gradient of parameter 'linear.weight' has been replaced"));
  }
}

// A linear layer whose forward() does something else before.
struct Writing : nn::Module {
  explicit Writing(std::function<void(Writing&)> write) : write_(std::move(write)) {
    register_module("linear", linear);
    factor = register_parameter("factor", at::ones({kWidth}), /*requires_grad=*/false);
    mean = register_buffer("mean", at::zeros({kWidth}));
    seen = register_buffer("seen", at::zeros({1}, at::kLong));
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    write_(*this);
    return linear(x) * factor;
  }
  nn::Linear linear{kWidth, kWidth};
  at::Tensor factor;
  at::Tensor mean;
  at::Tensor seen;

 private:
  std::function<void(Writing&)> write_;
};

// Other threads read the parameters, and what a step makes of buffers is read where they were.
TEST(Replica, RefusesAForwardThatWritesToWhatIsShared) {
  const auto error_of_write = [](const std::function<void(Writing&)>& write) {
    const auto module = std::make_shared<Writing>(write);
    const SharedState state(make_model(module));
    Replica replica(make_model(module), state);
    return error_of([&] { return replica.forward(at::ones({2, kWidth})); });
  };
  EXPECT_EQ(error_of_write([](Writing& net) { net.mean.add_(1), net.seen.add_(1); }), "no error");
  EXPECT_THAT(error_of_write([](Writing& net) { net.linear->weight.clamp_(-1, 1); }),
              HasSubstr("forward() writes to parameter 'linear.weight'"));
  EXPECT_THAT(error_of_write([](Writing& net) { net.factor.mul_(2); }),
              HasSubstr("forward() writes to parameter 'factor'"));
  EXPECT_THAT(error_of_write([](Writing& net) { net.seen.resize_({9}); }),
              HasSubstr("forward() gives buffer 'seen' other memory"));
  EXPECT_THAT(error_of_write([](Writing& net) { net.mean.set_(at::ones({kWidth})); }),
              HasSubstr("forward() gives buffer 'mean' other memory"));
}

TEST(Replica, BeginsEverySubstepWithTheSharedBuffers) {
  Replicas replicas;
  const Gradients gradients(replicas.state);
  const at::Tensor initial = replicas.state.flat_buffers().clone();
  substep(replicas.first, gradients, input());
  const at::Tensor after = replicas.first.flat_buffers().clone();
  EXPECT_FALSE(at::equal(after, initial)) << "batch normalisation has moved its statistics";
  EXPECT_EQ(replicas.first.counters()[0].tensor.item<std::int64_t>(), 1);
  EXPECT_TRUE(at::equal(replicas.state.flat_buffers(), initial)) << "the shared ones are untouched";
  EXPECT_EQ(replicas.state.counters()[0].item<std::int64_t>(), 0);
  EXPECT_TRUE(at::equal(replicas.second.flat_buffers(), initial)) << "so are another replica's";

  substep(replicas.first, gradients, input());
  EXPECT_TRUE(at::equal(replicas.first.flat_buffers(), after)) << "the second substep began anew";
  EXPECT_EQ(replicas.first.counters()[0].tensor.item<std::int64_t>(), 1);

  replicas.state.flat_buffers().fill_(0.25);
  replicas.state.counters()[0].fill_(17);
  substep(replicas.first, gradients, input());
  EXPECT_EQ(replicas.first.counters()[0].tensor.item<std::int64_t>(), 18);
  replicas.first.load_buffers();
  EXPECT_TRUE(replicas.first.flat_buffers().eq(0.25).all().item<bool>());
  EXPECT_EQ(replicas.first.counters()[0].tensor.item<std::int64_t>(), 17);
}

TEST(Replica, NormalisesWithTheSharedStatisticsInEvaluation) {
  Replicas replicas;
  replicas.first.set_training(false);
  const at::Tensor with_initial = replicas.first.forward(input());
  replicas.state.flat_buffers().fill_(4.0);
  EXPECT_TRUE(at::equal(replicas.first.forward(input()), with_initial));
  replicas.first.load_buffers();
  EXPECT_FALSE(at::equal(replicas.first.forward(input()), with_initial));
}

TEST(Replica, RefusesAnInstanceOfAnotherShape) {
  const SharedState state(make_model(std::make_shared<Net>(kWidth)));
  EXPECT_EQ(error_of([&] { Replica(make_model(std::make_shared<Net>(5)), state); }),
            "the model factory made 'linear.weight' in two shapes");
  EXPECT_EQ(error_of([&] {
              Model model = make_model(std::make_shared<Net>(kWidth));
              model.parameters.pop_back();
              Replica(std::move(model), state);
            }),
            "the model factory made one instance with 3 tensors and one with 2");
}

TEST(ModelFactory, MakesANewInstanceOfAUsersModuleAtEveryCall) {
  const ModelFactory factory = model_factory<Net>(std::int64_t{3});
  const Model one = factory();
  const Model two = factory();
  ASSERT_EQ(one.parameters.size(), 4U);
  EXPECT_EQ(one.parameters[0].name, "factor");
  EXPECT_EQ(one.buffers.size(), 3U);
  EXPECT_NE(one.parameters[1].tensor.data_ptr(), two.parameters[1].tensor.data_ptr());
  EXPECT_EQ(one.forward(at::ones({2, 3})).sizes(), (std::vector<std::int64_t>{2, 3}));
  // set_training reaches the module: in evaluation a single row can be normalised.
  one.set_training(false);
  EXPECT_NO_THROW(static_cast<void>(one.forward(at::ones({1, 3}))));
  one.set_training(true);
  EXPECT_ANY_THROW(static_cast<void>(one.forward(at::ones({1, 3}))));
}

TEST(ScriptFactory, MakesCopiesThatLeaveFrozenWhatIsFrozen) {
  torch::jit::Module module("Scaled");
  module.register_parameter("weight", at::full({3}, 2.0).requires_grad_(), /*is_buffer=*/false);
  module.register_parameter("scale", at::full({3}, 5.0), /*is_buffer=*/false);
  module.define("def forward(self, x):\n  return x * self.weight * self.scale\n");
  const Model model = script_factory(module)();
  ASSERT_EQ(model.parameters.size(), 2U);
  EXPECT_TRUE(model.parameters[0].tensor.requires_grad());
  EXPECT_FALSE(model.parameters[1].tensor.requires_grad());
  const SharedState state(model);
  ASSERT_EQ(state.trained().size(), 1U);
  EXPECT_EQ(state.trained()[0].name, "weight");
  // Nothing of a copy reaches the original.
  model.forward(at::ones({3})).sum().backward();
  EXPECT_TRUE(model.parameters[0].tensor.grad().defined());
  for (const auto& original : module.parameters()) EXPECT_FALSE(original.grad().defined());
}

}  // namespace
}  // namespace rubato
