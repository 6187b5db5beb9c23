// A Model of a TorchScript module shares the module: its functions capture handles to it.
// Attributes that forward() sets are found by searching its inlined graph for prim::SetAttr. During
// a call the module has copies of these tensors, and afterwards their new values are copied into
// the tensors that the trainer knows, which keep their memory. Instances are made by deepcopy(),
// with a table of tensors that the copy takes from elsewhere: those of sharing_script_factory()
// share the parameters and own their buffers. mode_notes() computes outputs with a copy of the
// module in both modes and compares them exactly.

#include "script.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/model.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

// The given tensor has a version counter of its own, as other threads may use other tensors of the
// same memory.
void TensorsOfCopy::give(const at::Tensor& tensor, const at::Tensor& other) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  at::Tensor given = other.variable_data();
  given.requires_grad_(tensor.requires_grad());
  tensors_.emplace(tensor, given);
}

// The replacements are moved out so that only the copy owns its tensors: a file stores shared
// tensors differently, so that its bytes would change.
torch::jit::Module TensorsOfCopy::copy_of(const torch::jit::Module& module) {
  auto tensors = std::exchange(tensors_, {});
  return torch::jit::Module(module._ivalue()->deepcopy(tensors));
}

namespace {

// Attributes with the classes that they belong to: instances of a class share its code.
using SetAttributes = std::set<std::pair<const c10::Type*, std::string>>;

template <class Visit>
void visit_nodes(torch::jit::Block* block, const Visit& visit) {
  for (torch::jit::Node* const node : block->nodes()) {
    visit(*node);
    for (torch::jit::Block* const inner : node->blocks()) visit_nodes(inner, visit);
  }
}

// Visits the nodes of forward() and of everything that it calls.
template <class Visit>
void visit_forward(const torch::jit::Module& module, const Visit& visit) {
  const auto graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  visit_nodes(graph->block(), visit);
}

SetAttributes set_attributes(const torch::jit::Module& module) {
  SetAttributes found;
  visit_forward(module, [&found](torch::jit::Node& node) {
    if (node.kind() != c10::prim::SetAttr) return;
    found.emplace(node.input(0)->type().get(), node.s(c10::attr::name));
  });
  return found;
}

// Tensors in the result of forward() of TorchScript: a tensor, or a tuple, list or dictionary of
// them.
Tensors tensors_in(const c10::IValue& output) {
  if (output.isTensor()) return {output.toTensor()};
  if (output.isTensorList()) return output.toTensorVector();
  Tensors tensors;
  if (output.isTuple()) {
    for (const c10::IValue& element : output.toTupleRef().elements()) {
      if (!element.isTensor()) break;
      tensors.push_back(element.toTensor());
    }
    if (tensors.size() == output.toTupleRef().elements().size()) return tensors;
  }
  if (output.isGenericDict()) {
    // Entries come in the order in which forward() inserted them.
    const auto dict = output.toGenericDict();
    for (const auto& entry : dict) {
      if (!entry.value().isTensor()) break;
      tensors.push_back(entry.value().toTensor());
    }
    if (tensors.size() == dict.size()) return tensors;
  }
  throw_error(
      "forward() of the TorchScript module returned {}; accepted: a tensor, or a tuple, list or "
      "dictionary of tensors",
      output.tagKind());
}

}  // namespace

// Lends the module copies of the tensors that forward() sets, for as long as it lives: backward may
// need the values that forward() began with.
class ScriptCall::Lent {
 public:
  explicit Lent(const std::vector<SetTensor>& set) : set_(set) {
    for (const SetTensor& one : set_) one.owner->setSlot(one.slot, one.tensor.detach().clone());
  }
  ~Lent() {
    for (const SetTensor& one : set_) one.owner->setSlot(one.slot, one.tensor);
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  // Copies the values that forward() has set into the trainer's tensors.
  void keep() const {
    const at::NoGradGuard no_grad;
    for (const SetTensor& one : set_) {
      const at::Tensor value = one.owner->getSlot(one.slot).toTensor();
      if (value.sizes() != one.tensor.sizes()) {
        throw_error(
            "forward() of the TorchScript module has made '{}' of shape [{}], which was [{}]; "
            "accepted: buffers that keep their shape",
            one.name, fmt::join(value.sizes(), ", "), fmt::join(one.tensor.sizes(), ", "));
      }
      at::Tensor kept = one.tensor;
      kept.copy_(value);
    }
  }

 private:
  const std::vector<SetTensor>& set_;
};

ScriptCall::ScriptCall(const torch::jit::Module& module) : module_(module) {
  if (!module_.find_method("forward")) {
    throw Error("the TorchScript module has no forward(); accepted: a module with one");
  }
  const SetAttributes set = set_attributes(module_);
  if (set.empty()) return;
  for (const auto& named : module_.named_modules()) {
    const auto type = named.value.type();
    for (std::size_t slot = 0; slot < type->numAttributes(); ++slot) {
      if (!set.contains({type.get(), type->getAttributeName(slot)})) continue;
      const std::string name =
          (named.name.empty() ? "" : named.name + ".") + type->getAttributeName(slot);
      const c10::IValue value = named.value._ivalue()->getSlot(slot);
      if (!type->getAttribute(slot)->isSubtypeOf(c10::TensorType::get()) || !value.isTensor()) {
        throw_error(
            "forward() of the TorchScript module sets '{}', of type {}, which no state would have; "
            "accepted: tensors alone (register_buffer())",
            name, type->getAttribute(slot)->repr_str());
      }
      set_.push_back(
          {.owner = named.value._ivalue(), .slot = slot, .name = name, .tensor = value.toTensor()});
    }
  }
}

Tensors ScriptCall::operator()(const Tensors& inputs) {
  // The code runs as it is written: optimised code differs in its bits, and in the random numbers
  // that it draws.
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  const Lent lent(set_);
  // Tasks run in this thread, with its random stream.
  const auto at_once = [](const std::function<void()>& task) { task(); };
  const auto future =
      module_.get_method("forward").run_async({inputs.begin(), inputs.end()}, {}, at_once);
  future->wait();
  Tensors outputs = tensors_in(future->value());
  lent.keep();
  return outputs;
}

bool ScriptCall::calls(const std::set<std::string_view>& operators) const {
  bool found = false;
  visit_forward(module_, [&](const torch::jit::Node& node) {
    found = found || operators.contains(node.kind().toQualString());
  });
  return found;
}

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
    throw_error(
        "'{}' and '{}' of the TorchScript module lie in one memory; accepted: tensors of their own "
        "(clone())",
        other.name, named.name);
  }
}

// TorchScript compiles the renormalisation of weights, but skips it when it runs.
void refuse_max_norm(const torch::jit::Module& module, const std::string& name) {
  const auto type = module.type();
  if (!type->hasConstant("max_norm") || type->getConstant("max_norm").isNone()) return;
  throw_error(
      "'{}' of the TorchScript module has a max_norm, which TorchScript leaves out; accepted: an "
      "embedding without it",
      name);
}

using NamedModule = std::pair<std::string, torch::jit::Module>;

// The parts of a module that were put into evaluation mode before it was exported, such as the
// batch normalisation of a network that is fine-tuned. In a module that is in this mode as a whole
// there are none.
std::vector<NamedModule> frozen_in(const torch::jit::Module& module) {
  std::vector<NamedModule> frozen;
  if (!module.hasattr("training") || !module.is_training()) return frozen;
  for (const auto& named : module.named_modules()) {
    const bool evaluates = named.value.hasattr("training") && !named.value.is_training();
    if (evaluates) frozen.emplace_back(named.name, named.value);
  }
  return frozen;
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
  model.set_training = [module, frozen = frozen_in(module)](bool training) {
    torch::jit::Module handle = module;
    handle.train(training);
    for (const auto& [name, part] : frozen) {
      torch::jit::Module evaluating = part;
      evaluating.setattr("training", false);
    }
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

namespace {

// Returns the kind of a part that computes something else in training: "dropout", "batch
// normalisation"; empty for others.
std::string_view kind_of_mode(const torch::jit::Module& part) {
  const auto type = part.type();
  const std::string name = type->name() ? type->name()->name() : std::string();
  if (name.find("BatchNorm") != std::string::npos && is_tensor(part, "running_mean")) {
    return "batch normalisation";
  }
  if (name.find("Dropout") == std::string::npos) return {};
  const bool drops_nothing = type->hasConstant("p") && type->getConstant("p").isDouble() &&
                             type->getConstant("p").toDouble() == 0;
  return drops_nothing ? std::string_view() : "dropout";
}

bool are_equal(const Tensors& some, const Tensors& others) {
  return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                    [](const at::Tensor& a, const at::Tensor& b) {
                      return a.sizes() == b.sizes() &&
                             at::allclose(a, b, /*rtol=*/0, /*atol=*/0, /*equal_nan=*/true);
                    });
}

Tensors copies_of(const std::vector<NamedTensor>& named) {
  Tensors copies;
  for (const NamedTensor& one : named) {
    if (one.tensor.defined()) copies.push_back(one.tensor.clone());
  }
  return copies;
}

}  // namespace

std::vector<std::string> mode_notes(const torch::jit::Module& module, const Tensors& inputs) {
  std::vector<std::string> notes;
  std::set<std::string_view> kinds;
  std::set<std::string> frozen;
  for (const auto& [name, part] : frozen_in(module)) frozen.insert(name);
  for (const auto& named : module.named_modules()) {
    const std::string_view kind = kind_of_mode(named.value);
    if (!kind.empty() && !frozen.contains(named.name)) kinds.insert(kind);
  }
  // The parts of one that stays are not named.
  std::erase_if(frozen, [whole = frozen](const std::string& name) {
    const std::size_t end = name.rfind('.');
    return end != std::string::npos && whole.contains(name.substr(0, end));
  });
  if (!frozen.empty()) {
    constexpr std::size_t kMost = 4;
    notes.push_back(fmt::format("{} {} in evaluation mode, as in the file",
                                first_names(frozen, kMost), frozen.size() == 1 ? "stays" : "stay"));
  }
  try {
    const at::NoGradGuard no_grad;
    // The copy has buffers of its own.
    const Model model = sharing_script_factory(module)();
    const auto outputs = [&](bool training, std::uint64_t seed) {
      model.set_training(training);
      at::manual_seed(seed);
      return model.forward(inputs);
    };
    const Tensors before = copies_of(model.buffers);
    const Tensors tested = outputs(/*training=*/false, 0);
    if (!are_equal(before, copies_of(model.buffers))) {
      notes.emplace_back("tests change its buffers, as of a file traced in training mode");
    } else if (!are_equal(tested, outputs(/*training=*/false, 1))) {
      notes.emplace_back(
          "its outputs are random in tests, too, as with dropout that was traced in training mode");
    } else if (!kinds.empty() && are_equal(tested, outputs(/*training=*/true, 0)) &&
               are_equal(before, copies_of(model.buffers))) {
      notes.push_back(fmt::format(
          "training computes what tests do, without {}, as of a file traced in evaluation mode",
          fmt::join(kinds, " and ")));
    }
  } catch (const std::exception&) {
    // The trial before training says why it cannot compute.
  }
  return notes;
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
