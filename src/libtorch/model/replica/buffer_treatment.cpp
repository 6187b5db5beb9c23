#include "buffer_treatment.hpp"

#include <cmath>
#include <string_view>
#include <unordered_map>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>

#include "shared_state.hpp"

namespace rubato {

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
    throw Error(fmt::format("a buffer rule names '{}', which is not a buffer of the model", name));
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
    throw Error(fmt::format("the rule of buffer '{}': {}", rule.buffer, why));
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

}  // namespace rubato
