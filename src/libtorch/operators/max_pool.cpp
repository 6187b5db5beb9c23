#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>

#include "base/machine/instruction_set.hpp"
#include "dispatch.hpp"
#include "max_pool_kernels.hpp"

namespace rubato::operators {

namespace {

// A single value stands for both dimensions, and none for the kernel's, as in libtorch.
std::int64_t value_of(at::IntArrayRef values, std::size_t dimension, std::int64_t otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[dimension];
}

struct Windows {
  at::IntArrayRef kernel;
  at::IntArrayRef stride;
  at::IntArrayRef padding;
  at::IntArrayRef dilation;
  bool ceil = false;
};

Axis axis_of(const at::Tensor& input, const Windows& windows, std::size_t dimension) {
  Axis axis{.input = input.size(static_cast<std::int64_t>(dimension) + 2),
            .kernel = value_of(windows.kernel, dimension, 0),
            .padding = value_of(windows.padding, dimension, 0),
            .dilation = value_of(windows.dilation, dimension, 1)};
  axis.stride = value_of(windows.stride, dimension, axis.kernel);
  if (axis.padding <= axis.kernel / 2) axis.output = windows_of(axis, windows.ceil);
  return axis;
}

// The pooling, if rubato's kernels can compute it.
std::optional<max_pool::Shape> shape_of(const at::Tensor& input, const Windows& windows) {
  if (!current().max_pool || cpu_instruction_set() < InstructionSet::avx2 ||
      !is_dense_float(input) || input.dim() != 4 || !input.is_contiguous()) {
    return std::nullopt;
  }
  if (windows.kernel.empty() || windows.kernel.size() > 2 || windows.stride.size() > 2 ||
      windows.padding.size() > 2 || windows.dilation.size() > 2) {
    return std::nullopt;
  }
  const max_pool::Shape shape{.planes = input.size(0) * input.size(1),
                              .rows = axis_of(input, windows, 0),
                              .columns = axis_of(input, windows, 1)};
  if (shape.rows.output < 1 || shape.columns.output < 1 ||
      shape.rows.input * shape.columns.input > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return shape;
}

// True if every input is in exactly one window.
bool is_partition(const Axis& axis) {
  return axis.kernel == axis.stride && axis.padding == 0 && axis.dilation == 1 &&
         axis.output * axis.stride == axis.input;
}
bool is_in_pairs(const max_pool::Shape& shape) {
  return is_partition(shape.rows) && is_partition(shape.columns) && shape.columns.kernel == 2;
}

std::tuple<at::Tensor, at::Tensor> pool(c10::DispatchKeySet keys, const at::Tensor& input,
                                        at::IntArrayRef kernel, at::IntArrayRef stride,
                                        at::IntArrayRef padding, at::IntArrayRef dilation,
                                        bool ceil) {
  const std::optional<max_pool::Shape> shape =
      shape_of(input, {kernel, stride, padding, dilation, ceil});
  if (!shape) {
    return at::_ops::max_pool2d_with_indices::redispatch(below(keys), input, kernel, stride,
                                                         padding, dilation, ceil);
  }
  const std::array<std::int64_t, 4> sizes{input.size(0), input.size(1), shape->rows.output,
                                          shape->columns.output};
  at::Tensor output = at::empty(sizes, input.options());
  at::Tensor indices = at::empty(sizes, input.options().dtype(at::kLong));
  max_pool::forward(*shape, floats(input), mutable_floats(output),
                    static_cast<std::int64_t*>(indices.data_ptr()));
  return {output, indices};
}

at::Tensor pool_backward(c10::DispatchKeySet keys, const at::Tensor& gradient,
                         const at::Tensor& input, at::IntArrayRef kernel, at::IntArrayRef stride,
                         at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil,
                         const at::Tensor& indices) {
  const std::optional<max_pool::Shape> shape =
      shape_of(input, {kernel, stride, padding, dilation, ceil});
  if (!shape || !is_in_pairs(*shape) || !is_dense_float(gradient)) {
    return at::_ops::max_pool2d_with_indices_backward::redispatch(
        below(keys), gradient, input, kernel, stride, padding, dilation, ceil, indices);
  }
  const at::Tensor dense = gradient.contiguous();
  const at::Tensor dense_indices = indices.contiguous();
  at::Tensor to = at::empty_like(input);
  max_pool::backward(*shape, floats(dense),
                     static_cast<const std::int64_t*>(dense_indices.data_ptr()),
                     mutable_floats(to));
  return to;
}

}  // namespace

void add_max_pool(Registrations& registrations) {
  add_kernel(registrations, "aten::max_pool2d_with_indices", TORCH_FN(pool));
  add_kernel(registrations, "aten::max_pool2d_with_indices_backward", TORCH_FN(pool_backward));
}

}  // namespace rubato::operators
