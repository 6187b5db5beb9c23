#pragma once

#include <span>
#include <vector>

#include <rubato/model/model.hpp>
#include <rubato/state/named_array.hpp>

namespace rubato {

/// A dense tensor on the CPU as an array, which sees it as it changes. What is complex has a last
/// dimension more, of real and imaginary part. Throws Error for a type that is none of
/// kElementTypes, and for a tensor that is not dense.
[[nodiscard]] NamedArray array_of(const NamedTensor& named);
[[nodiscard]] std::vector<NamedArray> arrays_of(std::span<const NamedTensor> tensors);

/// The other way: a tensor that sees the array, which must outlive it.
[[nodiscard]] NamedTensor tensor_of(const NamedArray& array);
[[nodiscard]] std::vector<NamedTensor> tensors_of(std::span<const NamedArray> arrays);

}  // namespace rubato
