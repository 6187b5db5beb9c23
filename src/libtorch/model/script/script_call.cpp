#include "script_call.hpp"

#include <functional>
#include <set>
#include <string>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include <rubato/base/error.hpp>

namespace rubato {

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
  throw Error(
      fmt::format("forward() of the TorchScript module returned {}; accepted: a tensor, or a "
                  "tuple, list or dictionary of tensors",
                  output.tagKind()));
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
        throw Error(fmt::format(
            "forward() of the TorchScript module has made '{}' of shape [{}], which "
            "was [{}]; accepted: buffers that keep their shape",
            one.name, fmt::join(value.sizes(), ", "), fmt::join(one.tensor.sizes(), ", ")));
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
        throw Error(fmt::format(
            "forward() of the TorchScript module sets '{}', of type {}, which no state would have; "
            "accepted: tensors alone (register_buffer())",
            name, type->getAttribute(slot)->repr_str()));
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

}  // namespace rubato
