#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>

#include <rubato/model/model.hpp>

namespace rubato {

/// How the running statistics of the BatchNorm and InstanceNorm modules in it combine: as averages
/// with the momentum of the module.
[[nodiscard]] std::vector<BufferRule> buffer_rules_of(const torch::nn::Module& module);

/// A torch::nn::Module with `at::Tensor forward(at::Tensor)`, as a Model that shares its ownership.
template <class Module>
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
  model.forward = [module](const at::Tensor& input) { return module->forward(input); };
  return model;
}

/// A factory of Module(arguments...):
///
///     const rubato::ModelFactory factory = rubato::model_factory<Net>(hidden);
template <class Module, class... Arguments>
[[nodiscard]] ModelFactory model_factory(Arguments... arguments) {
  return [arguments...] { return make_model(std::make_shared<Module>(arguments...)); };
}

}  // namespace rubato
