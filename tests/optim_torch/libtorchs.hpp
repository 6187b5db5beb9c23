#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
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
    if (const auto* const adam = std::get_if<AdamOptions>(&o.method)) {
      const auto set = [&]<class Of>(Of of) {
        set_options(groups.back(), of.betas({adam->beta1, adam->beta2})
                                       .eps(adam->epsilon)
                                       .amsgrad(adam->amsgrad)
                                       .weight_decay(o.weight_decay));
      };
      if (adam->decoupled) set(torch::optim::AdamWOptions());
      if (!adam->decoupled) set(torch::optim::AdamOptions());
    } else if (const auto* const rmsprop = std::get_if<RmspropOptions>(&o.method)) {
      set_options(groups.back(), torch::optim::RMSpropOptions()
                                     .alpha(rmsprop->alpha)
                                     .eps(rmsprop->epsilon)
                                     .centered(rmsprop->centered)
                                     .momentum(o.momentum)
                                     .weight_decay(o.weight_decay));
    } else {
      const auto adagrad = std::get<AdagradOptions>(o.method);
      set_options(groups.back(), torch::optim::AdagradOptions()
                                     .lr_decay(adagrad.lr_decay)
                                     .initial_accumulator_value(adagrad.initial_accumulator)
                                     .eps(adagrad.epsilon)
                                     .weight_decay(o.weight_decay));
    }
  }
  const OptimizerMethod& method = of_tensors.front().method;
  const std::string_view name = optimizer_name(method);
  if (name == "adam") return std::make_unique<torch::optim::Adam>(std::move(groups));
  if (name == "adamw") return std::make_unique<torch::optim::AdamW>(std::move(groups));
  if (name == "rmsprop") return std::make_unique<torch::optim::RMSprop>(std::move(groups));
  // The sums begin at the value of these options, not of the groups'.
  return std::make_unique<torch::optim::Adagrad>(
      std::move(groups), torch::optim::AdagradOptions().initial_accumulator_value(
                             std::get<AdagradOptions>(method).initial_accumulator));
}

}  // namespace rubato::test
