#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include <rubato/state/state.hpp>

namespace rubato {

/// Puts the values of a tensor on the CPU, of any of the types of kElementTypes, into a state.
void put_tensor(State& state, std::string_view name, const at::Tensor& tensor);

/// Copies them back into `tensor`. Throws Error when its type or its shape is another.
void read_tensor(const State& state, std::string_view name, const at::Tensor& tensor);

}  // namespace rubato
