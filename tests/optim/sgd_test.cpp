#include "optim/sgd.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <torch/optim/sgd.h>

#include <rubato/collective/kernels.hpp>

#include "optim/tensor_of.hpp"
#include "support/error_of.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::random_values;
using test::tensor_of;

double largest(const at::Tensor& values) {
  return values.abs().max().item<double>();
}

// 200 steps of changing size and rates, each after its reduction in libtorch.
void expect_torchs_sgd(const SgdOptions& options, GradientReduction reduction) {
  constexpr std::size_t kSize = 101;
  const auto initial = random_values<double>(kSize, 1);
  at::Tensor expected = tensor_of(initial).requires_grad_();
  torch::optim::SGD reference(
      {expected},
      torch::optim::SGDOptions(1.0).momentum(options.momentum).nesterov(options.nesterov));
  auto& reference_options =
      static_cast<torch::optim::SGDOptions&>(reference.param_groups().front().options());

  Workers workers(2);
  Sgd<double> sgd(ParameterLayout::whole(kSize), options);
  auto parameters = initial;
  for (std::uint32_t step = 0; step < 200; ++step) {
    const auto gradient_sum = random_values<double>(kSize, 100 + step);
    const std::int64_t minibatches = 1 + step % 7;
    const Rates rates{.learning_rate = 1e9,  // reported only
                      .update_rate = 0.02 + 0.001 * (step % 5),
                      .weight_decay_factor = static_cast<double>(1 + step % 3)};
    const double divisor =
        reduction == GradientReduction::mean ? static_cast<double>(minibatches) : 1.0;
    sgd.step({.parameters = parameters,
              .gradient_sum = gradient_sum,
              .gradient_factor = 1 / divisor,
              .rates = rates},
             workers);
    expected.mutable_grad() = tensor_of(gradient_sum) / divisor;
    reference_options.lr(rates.update_rate);
    reference_options.weight_decay(options.weight_decay * rates.weight_decay_factor);
    reference.step();
  }
  EXPECT_LE(largest(tensor_of(parameters) - expected.detach()), 1e-12 * largest(expected.detach()));
  EXPECT_GT(largest(tensor_of(initial) - expected.detach()), 0.1) << "200 steps lead somewhere";
}

TEST(Sgd, IsTorchsSgd) {
  for (const SgdOptions& options : {SgdOptions{},
                                    {.weight_decay = 0.01},
                                    {.momentum = 0.9},
                                    {.momentum = 0.9, .nesterov = true},
                                    {.momentum = 0.9, .weight_decay = 0.01},
                                    {.momentum = 0.5, .weight_decay = 0.01, .nesterov = true}}) {
    for (const auto reduction : {GradientReduction::mean, GradientReduction::sum}) {
      SCOPED_TRACE(testing::Message() << "momentum " << options.momentum << ", decay "
                                      << options.weight_decay << ", Nesterov " << options.nesterov
                                      << ", sum " << (reduction == GradientReduction::sum));
      expect_torchs_sgd(options, reduction);
    }
  }
}

template <class T>
class SgdOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SgdOf, Types);

// One task updates 65,536 parameters: sizes around that, and of several tasks.
TYPED_TEST(SgdOf, GivesTheSameBitsForEveryNumberOfThreads) {
  using T = TypeParam;
  constexpr std::size_t kShard = 65'536;
  const SgdOptions options{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  const Rates rates{.learning_rate = 0.1, .update_rate = 0.1, .weight_decay_factor = 2};
  for (const std::size_t size : {kShard - 1, kShard, kShard + 1, 5 * kShard + 12'345}) {
    // The whole buffer in one piece.
    auto expected = random_values<T>(size, 1);
    std::vector<T> velocity(size, T{0});
    for (std::uint32_t step = 0; step < 3; ++step) {
      const auto gradient = random_values<T>(size, 10 + step);
      sgd_step(std::span<T>(expected), std::span<T>(velocity), std::span<const T>(gradient),
               {.gradient_factor = T{1} / T{3},
                .learning_rate = static_cast<T>(0.1),
                .momentum = static_cast<T>(0.9),
                .weight_decay = static_cast<T>(0.02),
                .nesterov = true});
    }
    for (const int threads : {1, 2, 4}) {
      Workers workers(threads);
      Sgd<T> sgd(ParameterLayout::whole(size), options);
      auto parameters = random_values<T>(size, 1);
      for (std::uint32_t step = 0; step < 3; ++step) {
        const auto gradient = random_values<T>(size, 10 + step);
        sgd.step({.parameters = parameters,
                  .gradient_sum = gradient,
                  .gradient_factor = T{1} / T{3},
                  .rates = rates},
                 workers);
      }
      EXPECT_TRUE(parameters == expected) << size << " parameters, " << threads << " threads";
    }
  }
}

std::string error_of_options(const SgdOptions& options) {
  return test::error_of([&] { Sgd<float>(ParameterLayout::whole(10), options); });
}

TEST(Sgd, RefusesOptionsOutOfRange) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of_options({.momentum = -0.1}),
            "momentum -0.1: accepted are values from 0 to below 1");
  EXPECT_EQ(error_of_options({.momentum = 1}), "momentum 1: accepted are values from 0 to below 1");
  EXPECT_EQ(error_of_options({.momentum = kNan}),
            "momentum nan: accepted are values from 0 to below 1");
  EXPECT_EQ(error_of_options({.weight_decay = -1}),
            "weight decay -1: accepted are values of at least 0");
  EXPECT_EQ(error_of_options({.weight_decay = kInfinity}),
            "weight decay inf: accepted are values of at least 0");
  EXPECT_EQ(error_of_options({.weight_decay = kNan}),
            "weight decay nan: accepted are values of at least 0");
  EXPECT_EQ(error_of_options({.nesterov = true}), "Nesterov momentum needs a momentum above 0");
  EXPECT_EQ(error_of_options({.momentum = 0.99, .weight_decay = 10, .nesterov = true}), "no error");
}

}  // namespace
}  // namespace rubato
