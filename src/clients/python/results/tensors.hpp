#pragma once

#include <span>
#include <vector>

#include <pybind11/pybind11.h>

#include <rubato/base/state.hpp>
#include <rubato/libtorch/model.hpp>

namespace rubato::python {

// Tensors are passed as handles of the same memory: nothing is copied.

/// The tensors in a list of torch.Tensor, each as a handle of its own on the same values, so that
/// changes that Python makes to its handle (resize_, requires_grad_, deleting it) do not affect
/// this one. Throws Error if an element is not a tensor.
[[nodiscard]] Tensors tensors_in(const pybind11::list& list);

/// Copies of arrays, as they are now.
[[nodiscard]] std::vector<NamedTensor> copies_of(std::span<const NamedArray> arrays);

/// A list of torch.Tensor.
[[nodiscard]] pybind11::list list_of(std::span<const at::Tensor> tensors);

/// {name: torch.Tensor}.
[[nodiscard]] pybind11::dict dict_of(std::span<const NamedTensor> tensors);

}  // namespace rubato::python
