#include <algorithm>
#include <array>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/libtorch/dataset.hpp>

#include "base/core/check.hpp"
#include "libtorch/torch/optimizer/trained_arrays.hpp"

namespace rubato {

namespace {

constexpr std::array<std::pair<at::ScalarType, ElementType>, 10> kTypes{
    {{at::kDouble, ElementType::f64},
     {at::kFloat, ElementType::f32},
     {at::kHalf, ElementType::f16},
     {at::kBFloat16, ElementType::bf16},
     {at::kLong, ElementType::i64},
     {at::kInt, ElementType::i32},
     {at::kShort, ElementType::i16},
     {at::kChar, ElementType::i8},
     {at::kByte, ElementType::u8},
     {at::kBool, ElementType::boolean}}};

}  // namespace

NamedArray array_of(const NamedTensor& named) {
  const at::Tensor plain = named.tensor.detach();
  const at::Tensor tensor = plain.is_complex() ? at::view_as_real(plain) : plain;
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& types) {
    return types.first == tensor.scalar_type();
  });
  if (found == kTypes.end()) {
    throw Error(
        fmt::format("'{}' is {}, which no checkpoint can hold; accepted: real and complex "
                    "types",
                    named.name, c10::toString(tensor.scalar_type())));
  }
  if (!tensor.is_contiguous()) {
    throw Error(fmt::format("'{}' is not dense; accepted: a contiguous tensor", named.name));
  }
  return {.name = named.name,
          .type = found->second,
          .shape = tensor.sizes().vec(),
          .data = tensor.data_ptr()};
}

std::vector<NamedArray> arrays_of(std::span<const NamedTensor> tensors) {
  std::vector<NamedArray> arrays;
  arrays.reserve(tensors.size());
  for (const NamedTensor& named : tensors) arrays.push_back(array_of(named));
  return arrays;
}

NamedTensor tensor_of(const NamedArray& array) {
  const auto* const found = std::find_if(
      kTypes.begin(), kTypes.end(), [&](const auto& types) { return types.second == array.type; });
  return {array.name, at::from_blob(array.data, array.shape, found->first)};
}

std::vector<NamedTensor> tensors_of(std::span<const NamedArray> arrays) {
  std::vector<NamedTensor> tensors;
  tensors.reserve(arrays.size());
  for (const NamedArray& array : arrays) tensors.push_back(tensor_of(array));
  return tensors;
}

std::vector<TrainedArray> trained_arrays(const SharedState& state) {
  const std::vector<std::size_t> ends = state.parameter_layout().ends();
  std::vector<TrainedArray> trained;
  for (const NamedTensor& named : state.trained()) {
    trained.push_back({.array = array_of(named), .end = ends[trained.size()]});
  }
  return trained;
}

}  // namespace rubato
