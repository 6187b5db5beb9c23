#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

// Clang needs ivalue.h before what follows it.
#include <ATen/core/ivalue.h>
#include <torch/nn/module.h>

#include <rubato/libtorch/model.hpp>

namespace rubato {

/// Rules for the running statistics of the BatchNorm and InstanceNorm modules in it, which combine
/// as averages with the momentum of the module.
[[nodiscard]] std::vector<BufferRule> buffer_rules_of(const torch::nn::Module& module);

namespace detail {

// as_tensors() converts everything that forward() may return.
[[nodiscard]] inline Tensors as_tensors(at::Tensor output) {
  return {std::move(output)};
}
[[nodiscard]] inline Tensors as_tensors(Tensors outputs) {
  return outputs;
}
template <std::convertible_to<at::Tensor>... Output>
[[nodiscard]] Tensors as_tensors(const std::tuple<Output...>& outputs) {
  return std::apply([](const auto&... output) { return Tensors{output...}; }, outputs);
}
template <std::convertible_to<at::Tensor> First, std::convertible_to<at::Tensor> Second>
[[nodiscard]] Tensors as_tensors(const std::pair<First, Second>& outputs) {
  return {outputs.first, outputs.second};
}

// Largest number of tensors that forward() may take one by one.
inline constexpr std::size_t kMostInputs = 4;

template <class Module, std::size_t... i>
[[nodiscard]] consteval bool takes_each(std::index_sequence<i...>) {
  return requires(Module & module, const Tensors& inputs) {
    as_tensors(module.forward(inputs[i]...));
  };
}
template <class Module, std::size_t count>
inline constexpr bool kTakes = takes_each<Module>(std::make_index_sequence<count>());

template <class Module, std::size_t... count>
[[nodiscard]] consteval bool takes_some(std::index_sequence<count...>) {
  return (kTakes<Module, count + 1> || ...);
}
// True if forward() takes some number of tensors, one by one.
template <class Module>
inline constexpr bool kTakesEach = takes_some<Module>(std::make_index_sequence<kMostInputs>());

[[noreturn]] void reject_inputs(std::size_t count);

template <class Module, std::size_t count = 1>
[[nodiscard]] Tensors forward_each(Module& module, const Tensors& inputs) {
  if constexpr (count <= kMostInputs) {
    if constexpr (kTakes<Module, count>) {
      if (inputs.size() == count) {
        return [&]<std::size_t... i>(std::index_sequence<i...>) {
          return as_tensors(module.forward(inputs[i]...));
        }
        (std::make_index_sequence<count>());
      }
    }
    return forward_each<Module, count + 1>(module, inputs);
  } else {
    reject_inputs(inputs.size());
  }
}

}  // namespace detail

/// A torch::nn::Module whose forward() takes the inputs of a batch, up to four tensors one by one
/// or all as Tensors, and returns a tensor, Tensors, or a std::tuple or std::pair of tensors.
template <class Module>
concept TrainableModule = std::derived_from<Module, torch::nn::Module> &&
    (detail::kTakesEach<Module> || requires(Module & module, const Tensors& inputs) {
      detail::as_tensors(module.forward(inputs));
    });

/// The module as a Model that shares its ownership.
template <TrainableModule Module>
[[nodiscard]] Model make_model(std::shared_ptr<Module> module) {
  Model model;
  for (const auto& item : module->named_parameters()) {
    model.parameters.push_back({item.key(), item.value()});
  }
  for (const auto& item : module->named_buffers()) {
    model.buffers.push_back({item.key(), item.value()});
  }
  model.buffer_rules = buffer_rules_of(*module);
  model.set_training = [module](bool training) { module->train(training); };
  model.forward = [module](const Tensors& inputs) {
    if constexpr (detail::kTakesEach<Module>) {
      return detail::forward_each(*module, inputs);
    } else {
      return detail::as_tensors(module->forward(inputs));
    }
  };
  return model;
}

/// A factory of Module(arguments...):
///
///     const rubato::ModelFactory factory = rubato::model_factory<Net>(hidden);
template <TrainableModule Module, class... Arguments>
[[nodiscard]] ModelFactory model_factory(Arguments... arguments) {
  return [arguments...] { return make_model(std::make_shared<Module>(arguments...)); };
}

}  // namespace rubato
