#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "loop/optim/make_optimizer.hpp"
#include "optim_torch/libtorchs.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::random_values;
using test::tensor_copy;

double largest(const at::Tensor& values) {
  return values.abs().max().item<double>();
}

// 200 steps of changing size and rates, each after its reduction in libtorch.
void expect_torchs_sgd(const OptimizerOptions& options, GradientReduction reduction) {
  constexpr std::size_t kSize = 101;
  const bool nesterov = method_options<SgdOptions>(options.method).nesterov;
  const auto initial = random_values<double>(kSize, 1);
  at::Tensor expected = tensor_copy(initial).requires_grad_();
  torch::optim::SGD reference(
      {expected}, torch::optim::SGDOptions(1.0).momentum(options.momentum).nesterov(nesterov));
  auto& reference_options =
      static_cast<torch::optim::SGDOptions&>(reference.param_groups().front().options());

  Workers workers(2);
  const auto sgd = make_optimizer<double>(options, ParameterLayout::whole(kSize), {});
  auto parameters = initial;
  for (std::uint32_t step = 0; step < 200; ++step) {
    const auto gradient_sum = random_values<double>(kSize, 100 + step);
    const std::int64_t minibatches = 1 + step % 7;
    const Rates rates{.learning_rate = 1e9,  // reported only
                      .update_rate = 0.02 + 0.001 * (step % 5),
                      .weight_decay_factor = static_cast<double>(1 + step % 3)};
    const double divisor =
        reduction == GradientReduction::mean ? static_cast<double>(minibatches) : 1.0;
    sgd->step({.parameters = parameters,
               .gradient_sum = gradient_sum,
               .gradient_factor = 1 / divisor,
               .rates = rates},
              workers);
    expected.mutable_grad() = tensor_copy(gradient_sum) / divisor;
    reference_options.lr(rates.update_rate);
    reference_options.weight_decay(options.weight_decay * rates.weight_decay_factor);
    reference.step();
  }
  EXPECT_LE(largest(tensor_copy(parameters) - expected.detach()),
            1e-12 * largest(expected.detach()));
  EXPECT_GT(largest(tensor_copy(initial) - expected.detach()), 0.1) << "200 steps lead somewhere";
}

TEST(Sgd, IsTorchsSgd) {
  for (const OptimizerOptions& options :
       {OptimizerOptions{},
        {.weight_decay = 0.01},
        {.momentum = 0.9},
        {.method = SgdOptions{.nesterov = true}, .momentum = 0.9},
        {.momentum = 0.9, .weight_decay = 0.01},
        {.method = SgdOptions{.nesterov = true}, .momentum = 0.5, .weight_decay = 0.01}}) {
    for (const auto reduction : {GradientReduction::mean, GradientReduction::sum}) {
      SCOPED_TRACE(testing::Message()
                   << "momentum " << options.momentum << ", decay " << options.weight_decay
                   << ", Nesterov " << method_options<SgdOptions>(options.method).nesterov
                   << ", sum " << (reduction == GradientReduction::sum));
      expect_torchs_sgd(options, reduction);
    }
  }
}

}  // namespace
}  // namespace rubato
