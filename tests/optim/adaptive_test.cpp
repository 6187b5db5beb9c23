// Adam, AdamW, RMSprop and Adagrad: libtorch's numbers, and the same bits whoever computes them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include "optim/make_optimizer.hpp"
#include "support/error_of.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::random_values;
using MakeOfTorch =
    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

struct AdaptiveCase {
  std::string name;
  OptimizerOptions options;
  MakeOfTorch of_torch;
};

AdaptiveCase adam_case(const std::string& name, const OptimizerOptions& options) {
  return {name, options, [options](std::vector<at::Tensor> parameters) {
            return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                        torch::optim::AdamOptions()
                                                            .betas({options.beta1, options.beta2})
                                                            .eps(options.epsilon)
                                                            .amsgrad(options.amsgrad)
                                                            .weight_decay(options.weight_decay));
          }};
}

AdaptiveCase adamw_case(const std::string& name, const OptimizerOptions& options) {
  return {name, options, [options](std::vector<at::Tensor> parameters) {
            return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                                         torch::optim::AdamWOptions()
                                                             .betas({options.beta1, options.beta2})
                                                             .eps(options.epsilon)
                                                             .amsgrad(options.amsgrad)
                                                             .weight_decay(options.weight_decay));
          }};
}

AdaptiveCase rmsprop_case(const std::string& name, const OptimizerOptions& options) {
  return {name, options, [options](std::vector<at::Tensor> parameters) {
            return std::make_unique<torch::optim::RMSprop>(std::move(parameters),
                                                           torch::optim::RMSpropOptions()
                                                               .alpha(options.alpha)
                                                               .eps(options.epsilon)
                                                               .centered(options.centered)
                                                               .momentum(options.momentum)
                                                               .weight_decay(options.weight_decay));
          }};
}

AdaptiveCase adagrad_case(const std::string& name, const OptimizerOptions& options) {
  return {name, options, [options](std::vector<at::Tensor> parameters) {
            return std::make_unique<torch::optim::Adagrad>(
                std::move(parameters), torch::optim::AdagradOptions()
                                           .lr_decay(options.lr_decay)
                                           .initial_accumulator_value(options.initial_accumulator)
                                           .eps(options.epsilon)
                                           .weight_decay(options.weight_decay));
          }};
}

// Each option by itself, and all together.
std::vector<AdaptiveCase> every_case() {
  constexpr auto kAdam = OptimizerKind::adam;
  constexpr auto kAdamw = OptimizerKind::adamw;
  constexpr auto kRmsprop = OptimizerKind::rmsprop;
  constexpr auto kAdagrad = OptimizerKind::adagrad;
  return {adam_case("adam", {.kind = kAdam}),
          adam_case("adam's beta1", {.kind = kAdam, .beta1 = 0.5}),
          adam_case("adam's beta2", {.kind = kAdam, .beta2 = 0.7}),
          adam_case("adam's epsilon", {.kind = kAdam, .epsilon = 0.1}),
          adam_case("adam's amsgrad", {.kind = kAdam, .beta2 = 0.3, .amsgrad = true}),
          adam_case("adam's weight decay", {.kind = kAdam, .weight_decay = 0.1}),
          adam_case("all of adam", {.kind = kAdam,
                                    .weight_decay = 0.03,
                                    .beta1 = 0.8,
                                    .beta2 = 0.6,
                                    .amsgrad = true,
                                    .epsilon = 1e-3}),
          adamw_case("adamw", {.kind = kAdamw}),
          adamw_case("adamw's weight decay", {.kind = kAdamw, .weight_decay = 0.1}),
          adamw_case("all of adamw", {.kind = kAdamw,
                                      .weight_decay = 0.03,
                                      .beta1 = 0.8,
                                      .beta2 = 0.6,
                                      .amsgrad = true,
                                      .epsilon = 1e-3}),
          rmsprop_case("rmsprop", {.kind = kRmsprop}),
          rmsprop_case("rmsprop's alpha", {.kind = kRmsprop, .alpha = 0.5}),
          rmsprop_case("rmsprop's epsilon", {.kind = kRmsprop, .epsilon = 0.1}),
          rmsprop_case("rmsprop's momentum", {.kind = kRmsprop, .momentum = 0.9}),
          rmsprop_case("rmsprop's weight decay", {.kind = kRmsprop, .weight_decay = 0.1}),
          rmsprop_case("centred rmsprop", {.kind = kRmsprop, .alpha = 0.9, .centered = true}),
          rmsprop_case("all of rmsprop", {.kind = kRmsprop,
                                          .momentum = 0.5,
                                          .weight_decay = 0.03,
                                          .alpha = 0.8,
                                          .centered = true,
                                          .epsilon = 1e-3}),
          adagrad_case("adagrad", {.kind = kAdagrad, .epsilon = 1e-10}),
          adagrad_case("adagrad's epsilon", {.kind = kAdagrad, .epsilon = 0.1}),
          adagrad_case("adagrad's weight decay", {.kind = kAdagrad, .weight_decay = 0.1}),
          adagrad_case("adagrad's decay of the rate", {.kind = kAdagrad, .lr_decay = 0.3}),
          adagrad_case("adagrad's accumulator", {.kind = kAdagrad, .initial_accumulator = 0.7}),
          adagrad_case("all of adagrad", {.kind = kAdagrad,
                                          .weight_decay = 0.03,
                                          .lr_decay = 0.1,
                                          .initial_accumulator = 0.2,
                                          .epsilon = 1e-3})};
}

// Several tensors, of two groups in turns.
ParameterLayout layout_of_tensors(const std::vector<std::size_t>& sizes) {
  ParameterLayout layout;
  layout.layer_ends.resize(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), layout.layer_ends.begin());
  for (std::size_t i = 0; i < sizes.size(); ++i) layout.layer_groups.push_back(i % 2);
  return layout;
}

// The second group has half the rate, so that its tensors are ranges of their own.
const std::vector<GroupOptions> kTwoGroups{{}, {.learning_rate_factor = 0.5}};
std::vector<double> rates_of_elements(const std::vector<std::size_t>& sizes, double rate) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    rates.insert(rates.end(), sizes[i], i % 2 == 0 ? rate : rate / 2);
  }
  return rates;
}

template <class T>
at::Tensor tensor_copy(const std::vector<T>& values) {
  at::Tensor tensor =
      at::empty({static_cast<std::int64_t>(values.size())}, c10::CppTypeToScalarType<T>::value);
  std::copy(values.begin(), values.end(), tensor.data_ptr<T>());
  return tensor;
}

template <class T>
class AdaptiveOf : public testing::Test {};
using AdaptiveTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(AdaptiveOf, AdaptiveTypes);

// Libtorch fuses multiplications with additions where the CPU can, and we do not.
TYPED_TEST(AdaptiveOf, IsLibtorchsButForRounding) {
  using T = TypeParam;
  const double tolerance = std::is_same_v<T, double> ? 1e-12 : 1e-5;
  const std::vector<std::size_t> sizes{35, 5, 3, 64};
  const ParameterLayout layout = layout_of_tensors(sizes);
  constexpr int kSteps = 20;
  constexpr T kMinibatches = 4;
  for (const AdaptiveCase& of : every_case()) {
    SCOPED_TRACE(of.name);
    Workers workers(2);
    const auto optimizer = make_optimizer<T>(of.options, layout, {});
    const auto initial = random_values<T>(layout.size(), 1);
    auto parameters = initial;
    const at::Tensor expected = tensor_copy(initial);
    std::vector<std::int64_t> extents(sizes.begin(), sizes.end());
    std::vector<at::Tensor> tensors = expected.split_with_sizes(extents);
    for (at::Tensor& tensor : tensors) tensor = tensor.clone().requires_grad_();
    const auto reference = of.of_torch(tensors);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const auto sum = random_values<T>(layout.size(), 100 + step);
      const double rate = 0.01 + 0.002 * (step % 3);
      const at::Tensor mean = tensor_copy(sum) * (T{1} / kMinibatches);
      const std::vector<at::Tensor> gradients = mean.split_with_sizes(extents);
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].mutable_grad() = gradients[i];
      reference->param_groups().front().options().set_lr(rate);
      reference->step();
      optimizer->step({.parameters = parameters,
                       .gradient_sum = sum,
                       .gradient_factor = T{1} / kMinibatches,
                       .rates = {.update_rate = rate}},
                      workers);
      std::vector<at::Tensor> values;
      values.reserve(tensors.size());
      for (const at::Tensor& tensor : tensors) values.push_back(tensor.detach());
      ASSERT_TRUE(
          at::allclose(tensor_copy(parameters), at::cat(values), tolerance, tolerance / 100))
          << "step " << step;
    }
    EXPECT_FALSE(at::allclose(tensor_copy(parameters), tensor_copy(initial), 0.01, 0.01));
  }
}

// The formulas as the headers have them, element by element. Up to three steps a power is the same
// bits whichever way it is multiplied.
template <class T>
struct ByFormula {
  ByFormula(const OptimizerOptions& of, std::vector<T> initial)
      : options(of),
        parameters(std::move(initial)),
        mean(parameters.size()),
        square(parameters.size(),
               of.kind == OptimizerKind::adagrad ? static_cast<T>(of.initial_accumulator) : T{0}),
        largest(parameters.size()),
        velocity(parameters.size()) {}

  void step(const std::vector<T>& sum, T factor, T clip, const std::vector<double>& rates) {
    ++steps;
    power1 *= options.beta1;
    power2 *= options.beta2;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      T g = std::clamp(factor * sum[i], -clip, clip);
      if (options.kind == OptimizerKind::adamw) {
        parameters[i] *= static_cast<T>(1 - rates[i] * options.weight_decay);
      } else {
        g += static_cast<T>(options.weight_decay) * parameters[i];
      }
      move(i, g, rates[i]);
    }
  }

  void move(std::size_t i, T g, double rate) {
    const auto epsilon = static_cast<T>(options.epsilon);
    if (options.kind == OptimizerKind::adagrad) {
      square[i] += g * g;
      const double fallen = 1 + (steps - 1) * options.lr_decay;
      parameters[i] -= static_cast<T>(rate / fallen) * g / (std::sqrt(square[i]) + epsilon);
    } else if (options.kind == OptimizerKind::rmsprop) {
      average(square[i], options.alpha, g, g);
      average(mean[i], options.alpha, g, T{1});
      const T of = options.centered ? square[i] - mean[i] * mean[i] : square[i];
      const T divisor = std::sqrt(of) + epsilon;
      if (options.momentum == 0) {
        parameters[i] -= static_cast<T>(rate) * g / divisor;
        return;
      }
      velocity[i] = static_cast<T>(options.momentum) * velocity[i] + g / divisor;
      parameters[i] -= static_cast<T>(rate) * velocity[i];
    } else {
      average(mean[i], options.beta1, g, T{1});
      average(square[i], options.beta2, g, g);
      largest[i] = std::max(largest[i], square[i]);
      const T of = options.amsgrad ? largest[i] : square[i];
      const T divisor = std::sqrt(of) / static_cast<T>(std::sqrt(1 - power2)) + epsilon;
      parameters[i] -= static_cast<T>(rate / (1 - power1)) * mean[i] / divisor;
    }
  }

  static void average(T& value, double kept, T g, T times) {
    value = static_cast<T>(kept) * value + static_cast<T>(1 - kept) * g * times;
  }

  OptimizerOptions options;
  int steps = 0;
  double power1 = 1;
  double power2 = 1;
  std::vector<T> parameters;
  std::vector<T> mean;
  std::vector<T> square;
  std::vector<T> largest;
  std::vector<T> velocity;
};

// One task updates 65,536 parameters. Ranges are cut there, and where tensors of another group end.
TYPED_TEST(AdaptiveOf, HasTheBitsOfItsFormulaWhereverItIsCut) {
  using T = TypeParam;
  constexpr std::size_t kTask = 65'536;
  constexpr double kRate = 0.01;
  const T factor = T{1} / T{3};
  const auto clip = static_cast<T>(0.4);
  for (const AdaptiveCase& of : every_case()) {
    SCOPED_TRACE(of.name);
    for (const std::vector<std::size_t>& sizes :
         {std::vector<std::size_t>{0}, {1}, {15, 1, 2, 33}, {kTask - 7, 20, 0, kTask + 3, 1}}) {
      const ParameterLayout layout = layout_of_tensors(sizes);
      ByFormula<T> expected(of.options, random_values<T>(layout.size(), 1));
      std::vector<std::vector<T>> sums;
      for (std::uint32_t step = 0; step < 3; ++step) {
        sums.push_back(random_values<T>(layout.size(), 10 + step));
        expected.step(sums.back(), factor, clip, rates_of_elements(sizes, kRate));
      }
      for (const int threads : {1, 2, 4}) {
        Workers workers(threads);
        const auto optimizer = make_optimizer<T>(of.options, layout, kTwoGroups);
        auto parameters = random_values<T>(layout.size(), 1);
        for (const std::vector<T>& sum : sums) {
          optimizer->step({.parameters = parameters,
                           .gradient_sum = sum,
                           .gradient_factor = factor,
                           .clip = clip,
                           .rates = {.update_rate = kRate}},
                          workers);
        }
        EXPECT_TRUE(parameters == expected.parameters)
            << layout.size() << " parameters, " << threads << " threads";
      }
    }
  }
}

// Parameters that never have a gradient, and the padding between tensors.
TYPED_TEST(AdaptiveOf, StandsStillWhereItWouldDivideByZero) {
  using T = TypeParam;
  Workers workers(1);
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw,
                                   OptimizerKind::rmsprop, OptimizerKind::adagrad}) {
    for (const double momentum : {0.0, 0.9}) {
      if (momentum != 0 && kind != OptimizerKind::rmsprop) continue;
      const auto optimizer =
          make_optimizer<T>({.kind = kind, .momentum = momentum, .amsgrad = true, .epsilon = 0},
                            ParameterLayout::whole(40), {});
      auto parameters = random_values<T>(40, 1);
      const auto initial = parameters;
      std::vector<T> gradient(40, T{0});
      gradient[7] = T{1};
      for (int step = 0; step < 3; ++step) {
        optimizer->step(
            {.parameters = parameters, .gradient_sum = gradient, .rates = {.update_rate = 0.125}},
            workers);
      }
      EXPECT_LT(parameters[7], initial[7] - T{1} / 10) << choice_name(kOptimizers, kind);
      parameters[7] = initial[7];
      EXPECT_TRUE(parameters == initial) << choice_name(kOptimizers, kind);
    }
  }
}

// With gradients that stay the same the deviation is 0 but for rounding, which may be negative.
TYPED_TEST(AdaptiveOf, TakesNoRootOfANegativeDeviation) {
  using T = TypeParam;
  Workers workers(1);
  constexpr std::size_t kSize = 200;
  const auto optimizer = make_optimizer<T>(
      {.kind = OptimizerKind::rmsprop, .alpha = 0.1, .centered = true, .epsilon = 1},
      ParameterLayout::whole(kSize), {});
  std::vector<T> parameters(kSize, T{0});
  const auto gradient = random_values<T>(kSize, 1);
  bool negative = false;
  std::vector<T> square(kSize, T{0});
  std::vector<T> mean(kSize, T{0});
  for (int step = 0; step < 100; ++step) {
    optimizer->step(
        {.parameters = parameters, .gradient_sum = gradient, .rates = {.update_rate = 0.1}},
        workers);
    for (std::size_t i = 0; i < kSize; ++i) {
      ByFormula<T>::average(square[i], 0.1, gradient[i], gradient[i]);
      ByFormula<T>::average(mean[i], 0.1, gradient[i], T{1});
      negative = negative || square[i] - mean[i] * mean[i] < T{0};
    }
  }
  EXPECT_TRUE(negative) << "or else this shows nothing";
  EXPECT_TRUE(std::all_of(parameters.begin(), parameters.end(),
                          [](T value) { return std::isfinite(value); }));
}

// A rule may change the weight decay, coupled or not. Without a gradient AdamW does nothing else.
TEST(Adaptive, FollowsTheFactorOnTheWeightDecay) {
  Workers workers(1);
  const auto adamw = make_optimizer<double>({.kind = OptimizerKind::adamw, .weight_decay = 0.1},
                                            ParameterLayout::whole(3), {});
  std::vector<double> parameters{1, -2, 4};
  adamw->step({.parameters = parameters,
               .gradient_sum = std::vector<double>(3),
               .rates = {.update_rate = 0.5, .weight_decay_factor = 3}},
              workers);
  EXPECT_THAT(parameters, testing::ElementsAre(testing::DoubleEq(0.85), testing::DoubleEq(-1.7),
                                               testing::DoubleEq(3.4)));
}

TEST(Adaptive, RefusesAnUpdateOfAnotherSize) {
  Workers workers(1);
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw,
                                   OptimizerKind::rmsprop, OptimizerKind::adagrad}) {
    const auto optimizer = make_optimizer<float>({.kind = kind}, ParameterLayout::whole(3), {});
    std::vector<float> parameters(4);
    EXPECT_EQ(test::error_of([&] {
                optimizer->step({.parameters = parameters,
                                 .gradient_sum = std::vector<float>(4),
                                 .rates = {.update_rate = 0.1}},
                                workers);
              }),
              "an update of 4 parameters has 4 gradients, and the layout 3 values; accepted: as "
              "many of each");
  }
}

}  // namespace
}  // namespace rubato
