#pragma once

#include <vector>

#include <ATen/core/TensorBody.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>

#include "axis.hpp"
#include "operators.hpp"

namespace rubato::operators {

inline constexpr auto kKey = c10::DispatchKey::BackendSelect;

// Operators of the innermost scope of this thread.
const ReplacedOperators& current();

// Dispatch keys with which an operator that rubato does not compute is passed on.
inline c10::DispatchKeySet below(c10::DispatchKeySet keys) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
}

using Registrations = std::vector<c10::RegistrationHandleRAII>;

// The kernel is the operator's function with the dispatch keys as its first argument.
template <class Kernel>
void add_kernel(Registrations& registrations, const char* name, Kernel kernel) {
  registrations.push_back(c10::Dispatcher::singleton().registerImpl(
      {name, ""}, kKey, c10::KernelFunction::makeFromUnboxedFunction(kernel), c10::nullopt, nullptr,
      "rubato's own operators"));
}

void add_convolution(Registrations& registrations);
void add_max_pool(Registrations& registrations);
void add_batch_norm(Registrations& registrations);
void add_attention(Registrations& registrations);

// True if the kernels can read the tensor: float32 in memory of the CPU, strided and not empty.
inline bool is_dense_float(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() && tensor.scalar_type() == at::kFloat &&
         tensor.layout() == c10::Layout::Strided && !tensor.is_neg() && tensor.numel() > 0;
}

inline bool is_channels_last(const at::Tensor& tensor) {
  return tensor.is_contiguous(at::MemoryFormat::ChannelsLast) && !tensor.is_contiguous();
}

inline bool is_in_a_layout(const at::Tensor& tensor) {
  return tensor.is_contiguous() || tensor.is_contiguous(at::MemoryFormat::ChannelsLast);
}

inline at::MemoryFormat format_of(bool channels_last) {
  return channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

// Number of windows that fit, and with `ceil` of one more that does not, if it begins in the image
// or in the padding before it. 0 if none fits, and for numbers that libtorch refuses.
std::int64_t windows_of(const Axis& axis, bool ceil = false);

inline const float* floats(const at::Tensor& tensor) {
  return static_cast<const float*>(tensor.data_ptr());
}
inline float* mutable_floats(const at::Tensor& tensor) {
  return static_cast<float*>(tensor.data_ptr());
}

}  // namespace rubato::operators
