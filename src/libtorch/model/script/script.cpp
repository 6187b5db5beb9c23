#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/model.hpp>

#include "libtorch/model/replica/tensors_of_copy.hpp"
#include "script_call.hpp"
#include "script_instances.hpp"

namespace rubato {

namespace {

bool is_tensor(const torch::jit::Module& module, const std::string& name) {
  return module.hasattr(name) && module.attr(name).isTensor();
}

// Adds the rules of a module itself, if it has running statistics and a momentum.
void add_rules(const torch::jit::Module& module, const std::string& prefix,
               std::vector<BufferRule>& rules) {
  if (!module.hasattr("momentum")) return;
  const c10::IValue momentum = module.attr("momentum");
  if (!momentum.isNone() && !momentum.isDouble() && !momentum.isInt()) return;
  for (const std::string statistic : {"running_mean", "running_var"}) {
    if (!is_tensor(module, statistic)) continue;
    BufferRule rule{.buffer = prefix + statistic, .combination = BufferCombination::average};
    if (!momentum.isNone()) rule.momentum = momentum.toScalar().to<double>();
    if (is_tensor(module, "num_batches_tracked")) rule.counter = prefix + "num_batches_tracked";
    rules.push_back(rule);
  }
  if (is_tensor(module, "num_batches_tracked")) {
    rules.push_back(
        {.buffer = prefix + "num_batches_tracked", .combination = BufferCombination::sum});
  }
}

std::vector<NamedTensor> tensors_of_module(const torch::jit::Module& module) {
  std::vector<NamedTensor> tensors;
  for (const auto& named : module.named_parameters()) tensors.push_back({named.name, named.value});
  for (const auto& named : module.named_buffers()) tensors.push_back({named.name, named.value});
  return tensors;
}

// Module::deepcopy() would merge tensors that share memory into one.
void require_memory_of_their_own(const torch::jit::Module& module) {
  std::unordered_map<const void*, NamedTensor> seen;
  for (const NamedTensor& named : tensors_of_module(module)) {
    if (!named.tensor.defined() || !named.tensor.has_storage()) continue;
    const auto [place, is_new] =
        seen.try_emplace(named.tensor.storage().unsafeGetStorageImpl(), named);
    const NamedTensor& other = place->second;
    if (is_new || other.tensor.is_same(named.tensor)) continue;
    throw Error(
        fmt::format("'{}' and '{}' of the TorchScript module lie in one memory; accepted: tensors "
                    "of their own (clone())",
                    other.name, named.name));
  }
}

// TorchScript compiles the renormalisation of weights, but skips it when it runs.
void refuse_max_norm(const torch::jit::Module& module, const std::string& name) {
  const auto type = module.type();
  if (!type->hasConstant("max_norm") || type->getConstant("max_norm").isNone()) return;
  throw Error(fmt::format(
      "'{}' of the TorchScript module has a max_norm, which TorchScript leaves out; accepted: an "
      "embedding without it",
      name));
}

}  // namespace

Model make_model(const torch::jit::Module& module) {
  Model model;
  for (const auto& named : module.named_parameters()) {
    model.parameters.push_back({named.name, named.value});
  }
  for (const auto& named : module.named_buffers()) {
    model.buffers.push_back({named.name, named.value});
  }
  // The list contains the module itself, without a name.
  for (const auto& named : module.named_modules()) {
    refuse_max_norm(named.value, named.name);
    add_rules(named.value, named.name.empty() ? "" : named.name + ".", model.buffer_rules);
  }
  // A copy of a module is a handle to the same module.
  model.set_training = [module](bool training) {
    torch::jit::Module handle = module;
    handle.train(training);
  };
  model.forward = [call = std::make_shared<ScriptCall>(module)](const Tensors& inputs) {
    return (*call)(inputs);
  };
  return model;
}

ModelFactory script_factory(const torch::jit::Module& module) {
  require_memory_of_their_own(module);
  return [module] {
    const torch::jit::Module copy = module.deepcopy();
    // Parameters of a copy are linked to their originals, which they must not train.
    const auto originals = module.named_parameters();
    auto original = originals.begin();
    for (const auto& named : copy.named_parameters()) {
      at::Tensor parameter = named.value;
      parameter.detach_().requires_grad_((*original).value.requires_grad());
      ++original;
    }
    return make_model(copy);
  };
}

ModelFactory sharing_script_factory(const torch::jit::Module& module) {
  require_memory_of_their_own(module);
  return [module] {
    TensorsOfCopy tensors;
    for (const auto& named : module.named_parameters()) tensors.give(named.value, named.value);
    return make_model(tensors.copy_of(module));
  };
}

void forget_parameters(const torch::jit::Module& module) {
  for (const auto& named : module.named_parameters()) {
    at::Tensor parameter = named.value;
    if (parameter.layout() != at::kStrided) continue;
    // A single number stands for all values.
    const at::Tensor one = at::zeros({1}, parameter.options().requires_grad(false));
    parameter.set_data(one.expand(parameter.sizes()));
  }
}

}  // namespace rubato
