#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include <rubato/loop/optimizer.hpp>

namespace rubato::test {

/// One-dimensional, with memory of its own. T is float or double.
template <class T>
[[nodiscard]] at::Tensor tensor_copy(std::span<const T> values) {
  at::Tensor tensor =
      at::empty({static_cast<std::int64_t>(values.size())}, c10::CppTypeToScalarType<T>::value);
  std::copy(values.begin(), values.end(), tensor.data_ptr<T>());
  return tensor;
}
template <class T>
[[nodiscard]] at::Tensor tensor_copy(const std::vector<T>& values) {
  return tensor_copy(std::span<const T>(values));
}

template <class Options>
void set_options(torch::optim::OptimizerParamGroup& group, Options options) {
  group.set_options(std::make_unique<Options>(std::move(options)));
}

/// Libtorch's Adam, AdamW, RMSprop or Adagrad, with a parameter group for each tensor and its
/// options. They are of one kind, and differ at most in weight decay and momentum.
[[nodiscard]] inline std::unique_ptr<torch::optim::Optimizer> libtorchs(
    const std::vector<OptimizerOptions>& of_tensors, const std::vector<at::Tensor>& tensors) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const OptimizerOptions& o = of_tensors.at(i);
    groups.emplace_back(std::vector<at::Tensor>{tensors[i]});
    switch (o.kind) {
      case OptimizerKind::adam:
        set_options(groups.back(), torch::optim::AdamOptions()
                                       .betas({o.beta1, o.beta2})
                                       .eps(o.epsilon)
                                       .amsgrad(o.amsgrad)
                                       .weight_decay(o.weight_decay));
        break;
      case OptimizerKind::adamw:
        set_options(groups.back(), torch::optim::AdamWOptions()
                                       .betas({o.beta1, o.beta2})
                                       .eps(o.epsilon)
                                       .amsgrad(o.amsgrad)
                                       .weight_decay(o.weight_decay));
        break;
      case OptimizerKind::rmsprop:
        set_options(groups.back(), torch::optim::RMSpropOptions()
                                       .alpha(o.alpha)
                                       .eps(o.epsilon)
                                       .centered(o.centered)
                                       .momentum(o.momentum)
                                       .weight_decay(o.weight_decay));
        break;
      default:
        set_options(groups.back(), torch::optim::AdagradOptions()
                                       .lr_decay(o.lr_decay)
                                       .initial_accumulator_value(o.initial_accumulator)
                                       .eps(o.epsilon)
                                       .weight_decay(o.weight_decay));
    }
  }
  const OptimizerOptions& all = of_tensors.front();
  switch (all.kind) {
    case OptimizerKind::adam:
      return std::make_unique<torch::optim::Adam>(std::move(groups));
    case OptimizerKind::adamw:
      return std::make_unique<torch::optim::AdamW>(std::move(groups));
    case OptimizerKind::rmsprop:
      return std::make_unique<torch::optim::RMSprop>(std::move(groups));
    default:
      // The sums begin at the value of these options, not of the groups'.
      return std::make_unique<torch::optim::Adagrad>(
          std::move(groups),
          torch::optim::AdagradOptions().initial_accumulator_value(all.initial_accumulator));
  }
}

}  // namespace rubato::test
