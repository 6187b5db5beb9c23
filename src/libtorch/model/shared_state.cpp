// A model's tensors are copied into shared memory in three steps: sort_tensors() drops repeated
// tensors and checks types and devices, FlatLayout assigns places in the flat buffers, and
// SharedState copies the values and maps every name of the model to the tensor that now holds them.
// Tensors are identified by their TensorImpl, so a tied weight has several names and one place.
// Rules for buffers are checked here once and resolved from names to indices; StepBuffers applies
// them in every step.

#include "shared_state.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <ATen/Functions.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "base/core/check.hpp"
#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"

namespace rubato {

namespace {

constexpr std::int64_t kAlignmentBytes = 64;

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace

FlatLayout::FlatLayout(std::span<const NamedTensor> tensors, at::ScalarType type) : type_(type) {
  const auto alignment = kAlignmentBytes / static_cast<std::int64_t>(c10::elementSize(type));
  for (const auto& [name, tensor] : tensors) {
    RUBATO_CHECK(tensor.scalar_type() == type, "a flat buffer holds tensors of one type");
    segments_.push_back({size_, tensor.sizes().vec()});
    size_ += (tensor.numel() + alignment - 1) / alignment * alignment;
  }
}

std::vector<std::size_t> FlatLayout::ends() const {
  std::vector<std::size_t> ends;
  ends.reserve(segments_.size());
  for (std::size_t i = 1; i < segments_.size(); ++i) {
    ends.push_back(static_cast<std::size_t>(segments_[i].offset));
  }
  if (!segments_.empty()) ends.push_back(static_cast<std::size_t>(size_));
  return ends;
}

std::vector<at::Tensor> FlatLayout::views(const at::Tensor& flat, std::int64_t offset) const {
  return vector_of(segments_, [&](const Segment& segment) {
    return flat.as_strided(segment.shape, contiguous_strides(segment.shape),
                           offset + segment.offset);
  });
}

std::vector<at::Tensor> FlatLayout::views(void* memory) const {
  // Each view has a storage of its own, so that the views do not share a version counter.
  const auto element = static_cast<std::int64_t>(c10::elementSize(type_));
  return vector_of(segments_, [&](const Segment& segment) {
    return at::from_blob(static_cast<char*>(memory) + segment.offset * element, segment.shape,
                         at::TensorOptions().dtype(type_));
  });
}

namespace {

// Integers and bools can be summed; complex and quantised buffers keep the value of the first
// minibatch.
BufferTreatment treatment_of_type(at::ScalarType type) {
  return {.combination = c10::isIntegralType(type, /*includeBool=*/true)
                             ? BufferCombination::sum
                             : BufferCombination::first};
}

// Module::to(torch::kDouble) makes counters floating-point, too.
bool is_counter(const at::Tensor& tensor) {
  return tensor.numel() == 1 && (tensor.scalar_type() == at::kLong || tensor.is_floating_point());
}

// List and index of the buffer of a name.
struct Place {
  bool floating = true;
  std::size_t index = 0;
};

class Places {
 public:
  Places(const Model& model, const SortedTensors& sorted) {
    std::unordered_map<const void*, Place> of_tensor;
    for (std::size_t i = 0; i < sorted.buffers.size(); ++i) {
      of_tensor[sorted.buffers[i].tensor.unsafeGetTensorImpl()] = {.floating = true, .index = i};
    }
    for (std::size_t i = 0; i < sorted.counters.size(); ++i) {
      of_tensor[sorted.counters[i].tensor.unsafeGetTensorImpl()] = {.floating = false, .index = i};
    }
    for (const NamedTensor& named : model.buffers) {
      if (!named.tensor.defined()) continue;
      const auto found = of_tensor.find(named.tensor.unsafeGetTensorImpl());
      if (found != of_tensor.end()) places_[named.name] = found->second;
    }
  }

  [[nodiscard]] Place at(const std::string& name) const {
    const auto found = places_.find(name);
    if (found != places_.end()) return found->second;
    throw_error("a buffer rule names '{}', which is not a buffer of the model", name);
  }

 private:
  std::unordered_map<std::string, Place> places_;
};

BufferTreatment treatment_of(const BufferRule& rule, const Place& place, const Places& places,
                             const SortedTensors& sorted) {
  const bool floating = place.floating;
  const at::ScalarType type =
      (floating ? sorted.buffers : sorted.counters)[place.index].tensor.scalar_type();
  const auto refuse = [&](std::string_view why) {
    throw_error("the rule of buffer '{}': {}", rule.buffer, why);
  };
  const bool average = rule.combination == BufferCombination::average;
  if (!floating && (average || rule.combination == BufferCombination::mean)) {
    refuse("integers have no mean; accepted: sum, first");
  }
  if (!floating && rule.combination == BufferCombination::sum &&
      treatment_of_type(type).combination != BufferCombination::sum) {
    refuse(fmt::format("{} has no sum; accepted: first", c10::toString(type)));
  }
  if (rule.momentum && !std::isfinite(*rule.momentum)) refuse("its momentum must be finite");
  BufferTreatment treatment{.combination = rule.combination, .momentum = rule.momentum};
  if (!average) return treatment;
  if (!rule.counter.empty()) {
    const Place counter = places.at(rule.counter);
    const at::Tensor& tensor =
        (counter.floating ? sorted.buffers : sorted.counters)[counter.index].tensor;
    if (!is_counter(tensor)) refuse("its counter must be one int64 or floating-point number");
    // Floating-point counters are numbered after the integer ones.
    treatment.counter = counter.index + (counter.floating ? sorted.counters.size() : 0);
  } else if (!rule.momentum) {
    refuse("an average without momentum needs a counter");
  }
  return treatment;
}

}  // namespace

BufferTreatments treatments_of(const Model& model, const SortedTensors& sorted) {
  BufferTreatments treatments;
  treatments.buffers.resize(sorted.buffers.size());
  for (const NamedTensor& named : sorted.counters) {
    treatments.counters.push_back(treatment_of_type(named.tensor.scalar_type()));
  }
  const Places places(model, sorted);
  for (const BufferRule& rule : model.buffer_rules) {
    const Place place = places.at(rule.buffer);
    auto& list = place.floating ? treatments.buffers : treatments.counters;
    list[place.index] = treatment_of(rule, place, places, sorted);
  }
  return treatments;
}

// The factor is summed as a geometric series: without libm's pow(), which CPUs may round
// differently, and without a difference that cancels.
double factor_of_average(double momentum, std::int64_t minibatches, std::int64_t updates) {
  double kept = 1;
  for (std::int64_t i = 0; i < updates; ++i) kept *= 1 - momentum;
  double factor = 1;
  for (std::int64_t i = 1; i < minibatches; ++i) factor = 1 + kept * factor;
  return factor;
}

// (s - r) updates / (before + updates) becomes (s - r) all / (before + all), where all = updates *
// minibatches.
double factor_of_cumulative_average(std::int64_t before, std::int64_t minibatches,
                                    std::int64_t updates) {
  return static_cast<double>(minibatches * (before + updates)) /
         static_cast<double>(before + minibatches * updates);
}

namespace {

std::string layout_of(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.layout();
  return text.str();
}

void require_dense(std::string_view kind, const NamedTensor& named) {
  const at::Tensor& tensor = named.tensor;
  const auto refuse = [&](std::string_view what, std::string_view accepted) {
    throw_error("{} '{}' is {}; accepted: {}", kind, named.name, what, accepted);
  };
  if (!tensor.defined()) refuse("undefined", "a tensor");
  if (!tensor.device().is_cpu()) refuse("on " + tensor.device().str(), "cpu");
  if (tensor.layout() != at::kStrided) refuse(layout_of(tensor), "a dense tensor");
}

void require_type(std::string_view kind, const NamedTensor& named, at::ScalarType type) {
  if (named.tensor.scalar_type() == type) return;
  throw_error("{} '{}' is {}, but the first parameter is {}; all must be of one type", kind,
              named.name, c10::toString(named.tensor.scalar_type()), c10::toString(type));
}

// Returns the element type that the trained parameters and the floating-point buffers share.
at::ScalarType type_of(const SortedTensors& sorted) {
  if (sorted.trained.empty()) {
    throw Error("the model has no parameter to train (none with requires_grad)");
  }
  const at::ScalarType type = sorted.trained.front().tensor.scalar_type();
  if (type != at::kFloat && type != at::kDouble) {
    throw_error(
        "parameter '{}' is {}, which is not trained; accepted: Float, Double (module.float(); "
        "--precision says what it is computed in)",
        sorted.trained.front().name, c10::toString(type));
  }
  for (const NamedTensor& named : sorted.trained) require_type("parameter", named, type);
  for (const NamedTensor& named : sorted.buffers) require_type("buffer", named, type);
  const bool empty = std::ranges::all_of(
      sorted.trained, [](const NamedTensor& named) { return named.tensor.numel() == 0; });
  if (empty) {
    throw_error("parameter '{}' has no element; accepted: a model with some to train",
                sorted.trained.front().name);
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
