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

// Number of outputs as libtorch counts them: with `ceil` one more that does not fit, if it begins
// in the image or in the padding before it.
std::int64_t outputs(std::int64_t inputs, std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding, std::int64_t dilation, bool ceil) {
  const std::int64_t room = inputs + 2 * padding - dilation * (kernel - 1) - 1;
  if (room < 0) return 0;
  std::int64_t count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  if (ceil && (count - 1) * stride >= inputs + padding) --count;
  return count;
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
  max_pool::Shape shape{.planes = input.size(0) * input.size(1),
                        .input_rows = input.size(2),
                        .input_columns = input.size(3)};
  shape.kernel_rows = value_of(windows.kernel, 0, 0);
  shape.kernel_columns = value_of(windows.kernel, 1, 0);
  shape.row_stride = value_of(windows.stride, 0, shape.kernel_rows);
  shape.column_stride = value_of(windows.stride, 1, shape.kernel_columns);
  shape.row_padding = value_of(windows.padding, 0, 0);
  shape.column_padding = value_of(windows.padding, 1, 0);
  shape.row_dilation = value_of(windows.dilation, 0, 1);
  shape.column_dilation = value_of(windows.dilation, 1, 1);
  // Arguments that libtorch refuses are left to it, for its own message.
  if (shape.kernel_rows < 1 || shape.kernel_columns < 1 || shape.row_stride < 1 ||
      shape.column_stride < 1 || shape.row_dilation < 1 || shape.column_dilation < 1 ||
      shape.row_padding < 0 || shape.column_padding < 0 ||
      shape.row_padding > shape.kernel_rows / 2 ||
      shape.column_padding > shape.kernel_columns / 2) {
    return std::nullopt;
  }
  shape.output_rows = outputs(shape.input_rows, shape.kernel_rows, shape.row_stride,
                              shape.row_padding, shape.row_dilation, windows.ceil);
  shape.output_columns = outputs(shape.input_columns, shape.kernel_columns, shape.column_stride,
                                 shape.column_padding, shape.column_dilation, windows.ceil);
  if (shape.output_rows < 1 || shape.output_columns < 1 ||
      shape.input_rows * shape.input_columns > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return shape;
}

std::tuple<at::Tensor, at::Tensor> pool(c10::DispatchKeySet keys, const at::Tensor& input,
                                        at::IntArrayRef kernel, at::IntArrayRef stride,
                                        at::IntArrayRef padding, at::IntArrayRef dilation,
                                        bool ceil) {
  const std::optional<max_pool::Shape> shape = shape_of(
      input,
      {.kernel = kernel, .stride = stride, .padding = padding, .dilation = dilation, .ceil = ceil});
  if (!shape) {
    return at::_ops::max_pool2d_with_indices::redispatch(below(keys), input, kernel, stride,
                                                         padding, dilation, ceil);
  }
  const std::array<std::int64_t, 4> sizes{input.size(0), input.size(1), shape->output_rows,
                                          shape->output_columns};
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
  const std::optional<max_pool::Shape> shape = shape_of(
      input,
      {.kernel = kernel, .stride = stride, .padding = padding, .dilation = dilation, .ceil = ceil});
  const bool ours =
      shape && shape->is_partition() && (shape->channels_last || shape->kernel_columns == 2);
  if (!ours || !is_dense_float(gradient)) {
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
