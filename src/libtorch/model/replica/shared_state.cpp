#include "shared_state.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

namespace {

std::string layout_of(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.layout();
  return text.str();
}

void require_dense(std::string_view kind, const NamedTensor& named) {
  const at::Tensor& tensor = named.tensor;
  const auto refuse = [&](std::string_view what, std::string_view accepted) {
    throw Error(fmt::format("{} '{}' is {}; accepted: {}", kind, named.name, what, accepted));
  };
  if (!tensor.defined()) refuse("undefined", "a tensor");
  if (!tensor.device().is_cpu()) refuse("on " + tensor.device().str(), "cpu");
  if (tensor.layout() != at::kStrided) refuse(layout_of(tensor), "a dense tensor");
}

void require_type(std::string_view kind, const NamedTensor& named, at::ScalarType type) {
  if (named.tensor.scalar_type() == type) return;
  throw Error(fmt::format("{} '{}' is {}, but the first parameter is {}; all must be of one type",
                          kind, named.name, c10::toString(named.tensor.scalar_type()),
                          c10::toString(type)));
}

// Returns the element type that the trained parameters and the floating-point buffers share.
at::ScalarType type_of(const SortedTensors& sorted) {
  if (sorted.trained.empty()) {
    throw Error("the model has no parameter to train (none with requires_grad)");
  }
  const at::ScalarType type = sorted.trained.front().tensor.scalar_type();
  if (type != at::kFloat && type != at::kDouble) {
    throw Error(fmt::format(
        "parameter '{}' is {}, which is not trained; accepted: Float, Double (module.float(); "
        "--precision says what it is computed in)",
        sorted.trained.front().name, c10::toString(type)));
  }
  for (const NamedTensor& named : sorted.trained) require_type("parameter", named, type);
  for (const NamedTensor& named : sorted.buffers) require_type("buffer", named, type);
  const bool empty = std::ranges::all_of(
      sorted.trained, [](const NamedTensor& named) { return named.tensor.numel() == 0; });
  if (empty) {
    throw Error(fmt::format("parameter '{}' has no element; accepted: a model with some to train",
                            sorted.trained.front().name));
  }
  return type;
}

// Copies the values of `tensors` into a flat buffer; the padding is zero.
at::Tensor flatten(const FlatLayout& layout, const std::vector<NamedTensor>& tensors) {
  at::Tensor flat = at::zeros({layout.size()}, at::TensorOptions().dtype(layout.type()));
  const auto views = layout.views(flat);
  for (std::size_t i = 0; i < tensors.size(); ++i) views[i].copy_(tensors[i].tensor.detach());
  return flat;
}

}  // namespace

SortedTensors sort_tensors(const Model& model) {
  SortedTensors sorted;
  std::unordered_set<const void*> seen;
  for (const NamedTensor& named : model.parameters) {
    require_dense("parameter", named);
    if (!seen.insert(named.tensor.unsafeGetTensorImpl()).second) continue;
    (named.tensor.requires_grad() ? sorted.trained : sorted.frozen).push_back(named);
  }
  for (const NamedTensor& named : model.buffers) {
    if (!named.tensor.defined()) continue;
    require_dense("buffer", named);
    if (!seen.insert(named.tensor.unsafeGetTensorImpl()).second) continue;
    (named.tensor.is_floating_point() ? sorted.buffers : sorted.counters).push_back(named);
  }
  sorted.type = type_of(sorted);
  return sorted;
}

SharedState::SharedState(const Model& model) {
  const SortedTensors sorted = sort_tensors(model);
  treatments_ = treatments_of(model, sorted);
  parameter_layout_ = FlatLayout(sorted.trained, sorted.type);
  flat_parameters_ = flatten(parameter_layout_, sorted.trained);
  buffer_layout_ = FlatLayout(sorted.buffers, sorted.type);
  flat_buffers_ = flatten(buffer_layout_, sorted.buffers);

  const auto trained_views = parameter_layout_.views(flat_parameters_);
  for (std::size_t i = 0; i < trained_views.size(); ++i) {
    trained_.push_back({sorted.trained[i].name, trained_views[i]});
  }

  // Maps the model's tensors to those that hold their values here.
  std::unordered_map<const void*, at::Tensor> held;
  const auto hold = [&held](const std::vector<NamedTensor>& from,
                            const std::vector<at::Tensor>& to) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      held[from[i].tensor.unsafeGetTensorImpl()] = to[i];
    }
  };
  hold(sorted.trained, trained_views);
  hold(sorted.buffers, buffer_layout_.views(flat_buffers_));
  for (const NamedTensor& named : sorted.frozen) {
    frozen_.push_back(named.tensor.detach().clone(at::MemoryFormat::Contiguous));
    held[named.tensor.unsafeGetTensorImpl()] = frozen_.back();
  }
  for (const NamedTensor& named : sorted.counters) {
    counters_.push_back(named.tensor.detach().clone(at::MemoryFormat::Contiguous));
    held[named.tensor.unsafeGetTensorImpl()] = counters_.back();
  }
  for (const NamedTensor& named : model.parameters) {
    parameters_.push_back({named.name, held.at(named.tensor.unsafeGetTensorImpl())});
  }
  for (const NamedTensor& named : model.buffers) {
    if (!named.tensor.defined()) continue;
    buffers_.push_back({named.name, held.at(named.tensor.unsafeGetTensorImpl())});
  }
}

bool SharedState::is_shared_by(const Model& model) const {
  for (const NamedTensor& named : model.parameters) {
    if (named.tensor.defined() && named.tensor.is_alias_of(flat_parameters_)) return true;
  }
  return false;
}

}  // namespace rubato
