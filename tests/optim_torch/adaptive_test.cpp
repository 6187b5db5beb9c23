// Adam, AdamW, RMSprop and Adagrad beside libtorch's.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "optim/adaptive_cases.hpp"
#include "optim/grouped_problem.hpp"
#include "optim_torch/libtorchs.hpp"
#include "support/random_values.hpp"

namespace rubato {
namespace {

using test::adaptive_cases;
using test::AdaptiveCase;
using test::layout_of_tensors;
using test::libtorchs;
using test::random_values;
using test::tensor_copy;

template <class T>
class AdaptiveBesideLibtorch : public testing::Test {};
using TypesBesideLibtorch = testing::Types<float, double>;
TYPED_TEST_SUITE(AdaptiveBesideLibtorch, TypesBesideLibtorch);

// Libtorch fuses multiplications with additions where the CPU can, and we do not.
TYPED_TEST(AdaptiveBesideLibtorch, IsLibtorchsButForRounding) {
  using T = TypeParam;
  const double tolerance = std::is_same_v<T, double> ? 1e-12 : 1e-5;
  const std::vector<std::size_t> sizes{35, 5, 3, 64};
  const ParameterLayout layout = layout_of_tensors(sizes);
  constexpr int kSteps = 20;
  constexpr T kMinibatches = 4;
  for (const AdaptiveCase& of : adaptive_cases()) {
    // Libtorch's have no minibatches.
    if (facts_of(of.options.method).squares) continue;
    SCOPED_TRACE(of.name);
    Workers workers(2);
    const auto optimizer = make_optimizer<T>(of.options, layout, {});
    const auto initial = random_values<T>(layout.size(), 1);
    auto parameters = initial;
    const at::Tensor expected = tensor_copy(initial);
    std::vector<std::int64_t> extents(sizes.begin(), sizes.end());
    std::vector<at::Tensor> tensors = expected.split_with_sizes(extents);
    for (at::Tensor& tensor : tensors) tensor = tensor.clone().requires_grad_();
    const auto reference =
        libtorchs(std::vector<OptimizerOptions>(tensors.size(), of.options), tensors);
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const auto sum = random_values<T>(layout.size(), 100 + step);
      const double rate = 0.01 + 0.002 * (step % 3);
      const at::Tensor mean = tensor_copy(sum) * (T{1} / kMinibatches);
      const std::vector<at::Tensor> gradients = mean.split_with_sizes(extents);
      for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].mutable_grad() = gradients[i];
      for (auto& group : reference->param_groups()) group.options().set_lr(rate);
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

// With the options of a tensor's group, the rule's factors, the factor of the gradient and its
// bound.
TEST(EveryOptimizer, FollowsGroupsRulesAndBounds) {
  for (const auto& [name, options] : test::every_kind()) {
    if (!test::is_adaptive(options) || facts_of(options.method).squares) continue;
    SCOPED_TRACE(name);
    test::GroupedProblem flat;
    const auto optimizer = flat.make(options);
    std::vector<at::Tensor> before;
    std::vector<at::Tensor> plain;
    std::vector<OptimizerOptions> of_tensors;
    for (std::size_t i = 0; i < 3; ++i) {
      before.push_back(tensor_copy(flat.copy_of(i)));
      plain.push_back(before.back().clone().requires_grad_());
      const test::Expectation e = test::expectation_of(i, options, /*rate=*/1);
      of_tensors.push_back(options);
      of_tensors.back().weight_decay = e.decay;
      of_tensors.back().momentum = e.momentum;
    }
    const auto reference = libtorchs(of_tensors, plain);
    for (int step = 0; step < 12; ++step) {
      flat.draw();
      const double rate = 0.01 + 0.002 * (step % 3);
      for (std::size_t i = 0; i < 3; ++i) {
        plain[i].mutable_grad() = tensor_copy(flat.gradient(i));
        const double of_tensor = test::expectation_of(i, options, rate).rate;
        reference->param_groups()[i].options().set_lr(of_tensor);
      }
      reference->step();
      flat.step(*optimizer, rate);
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(at::allclose(tensor_copy(flat.copy_of(i)), plain[i].detach(), 1e-11, 1e-13))
            << "tensor " << i << " in step " << step;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(at::allclose(tensor_copy(flat.copy_of(i)), before[i], 1e-4, 1e-4))
          << i << " stands still";
    }
  }
}

}  // namespace
}  // namespace rubato
