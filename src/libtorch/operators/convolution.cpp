// These functions replace libtorch's convolutions, forward and backward (docs/adr/0023 and 0066).
// shape_of() checks each call: rubato computes dense float32 images in two dimensions, without
// groups, on CPUs with AVX2, in shapes for which its kernels are faster; all other calls are passed
// on to libtorch with the remaining dispatch keys. Shapes that suit Winograd's method use it, the
// others the direct kernels. Every thread keeps one scratch memory, which grows to what its largest
// call needs. Some calls that go to libtorch are made contiguous first, to avoid a defect of oneDNN
// (breaks_onednn()).

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>

#include <ATen/ops/_convolution_ops.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DispatchKeySet.h>

#include "base/machine/instruction_set.hpp"
#include "dispatch.hpp"
#include "lane_convolution.hpp"
#include "libtorch/versions.hpp"

namespace rubato::operators {

namespace {

using lane_convolution::Kernels;
using lane_convolution::Sizes;

constexpr std::int64_t kFewestImages = 8;
// Number of channels in a block of libtorch's kernels.
constexpr std::int64_t kBlock = 16;
// Fewest multiply-adds for each value of input and output that has to be brought into lanes and
// back.
constexpr std::int64_t kLeastWork = 16;
// Limits for Winograd's method.
constexpr std::int64_t kFewestChannels = 8;
constexpr std::int64_t kFewestPixels = 4;
// Limit beyond which the sums of weight gradients, a kilobyte for each pair of channels, leave the
// cache.
constexpr std::int64_t kMostPairs = std::int64_t{128} * 128;

struct Geometry {
  at::IntArrayRef stride;
  at::IntArrayRef padding;
  at::IntArrayRef dilation;
  bool transposed = false;
  std::int64_t groups = 1;
};

// The two functions below say whether kernels are faster than libtorch's, as bench_operators
// measures them (docs/adr/0023 and 0066).
bool is_for_winograd(const lane_convolution::Shape& s) {
  constexpr std::int64_t kKernel = 3;
  return s.rows.kernel == kKernel && s.columns.kernel == kKernel && s.rows.stride == 1 &&
         s.columns.stride == 1 && s.rows.dilation == 1 && s.columns.dilation == 1 &&
         s.rows.padding < kKernel && s.columns.padding < kKernel && s.images >= kFewestImages &&
         std::min(s.input_channels, s.output_channels) >= kFewestChannels &&
         s.input_channels * s.output_channels <= kMostPairs &&
         std::min(s.rows.output, s.columns.output) >= kFewestPixels;
}

bool is_for_direct(const lane_convolution::Shape& s) {
  if (s.images < kFewestImages) return false;
  const std::int64_t fewest = std::min(s.input_channels, s.output_channels);
  if (fewest > kBlock || (fewest == kBlock && s.channels_last)) return false;
  const std::int64_t work = s.input_channels * s.output_channels * s.rows.kernel *
                            s.columns.kernel * s.rows.output * s.columns.output;
  const std::int64_t values = s.input_channels * s.rows.input * s.columns.input +
                              s.output_channels * s.rows.output * s.columns.output;
  return work >= kLeastWork * values;
}

Axis axis_of(const at::Tensor& input, const at::Tensor& weight, const Geometry& geometry,
             std::int64_t dimension) {
  const auto d = static_cast<std::size_t>(dimension);
  Axis axis{.input = input.size(dimension + 2),
            .kernel = weight.size(dimension + 2),
            .stride = geometry.stride[d],
            .padding = geometry.padding[d],
            .dilation = geometry.dilation[d]};
  axis.output = windows_of(axis);
  return axis;
}

// The convolution, if rubato's kernels can compute it faster.
std::optional<lane_convolution::Shape> shape_of(const at::Tensor& input, const at::Tensor& weight,
                                                const Geometry& geometry) {
  if (!current().convolution || cpu_instruction_set() < InstructionSet::avx2) return std::nullopt;
  if (geometry.transposed || geometry.groups != 1 || !is_dense_float(input) ||
      !is_dense_float(weight) || input.dim() != 4 || weight.dim() != 4 || !is_in_a_layout(input) ||
      !is_in_a_layout(weight) || weight.size(1) != input.size(1)) {
    return std::nullopt;
  }
  if (geometry.stride.size() != 2 || geometry.padding.size() != 2 ||
      geometry.dilation.size() != 2) {
    return std::nullopt;
  }
  const lane_convolution::Shape shape{.images = input.size(0),
                                      .input_channels = input.size(1),
                                      .output_channels = weight.size(0),
                                      .rows = axis_of(input, weight, geometry, 0),
                                      .columns = axis_of(input, weight, geometry, 1),
                                      .channels_last = is_channels_last(input),
                                      .weight_output = weight.stride(0),
                                      .weight_input = weight.stride(1),
                                      .weight_row = weight.stride(2),
                                      .weight_column = weight.stride(3)};
  if (shape.rows.output < 1 || shape.columns.output < 1) return std::nullopt;
  if (!is_for_winograd(shape) && !is_for_direct(shape)) return std::nullopt;
  return shape;
}

// Both widths give the same bits; the narrower vectors are used if half of the wider ones would be
// empty.
Kernels kernels_for(const lane_convolution::Shape& shape) {
  constexpr std::int64_t kWide = 16;
  const std::int64_t last = shape.images % kWide;
  const bool half_empty = last > 0 && last <= kWide / 2 && shape.images < 2 * kWide;
  static const bool has_wide = allowed_instruction_set() == InstructionSet::avx512;
  const bool wide = has_wide && !half_empty;
  if (is_for_winograd(shape)) {
    return wide ? lane_convolution::avx512_winograd_kernels()
                : lane_convolution::avx2_winograd_kernels();
  }
  return wide ? lane_convolution::avx512_kernels() : lane_convolution::avx2_kernels();
}

// Scratch memory of one thread, which grows to the size that its largest convolution needs.
class Workspace {
 public:
  lane_convolution::Scratch of(const Sizes& sizes) {
    constexpr std::size_t kAlignment = 64;
    if (sizes.floats > floats_size_) {
      floats_.reset(static_cast<float*>(
          ::operator new[](sizes.floats * sizeof(float), std::align_val_t(kAlignment))));
      floats_size_ = sizes.floats;
    }
    if (sizes.offsets > offsets_size_) {
      offsets_ = std::make_unique<std::ptrdiff_t[]>(sizes.offsets);
      offsets_size_ = sizes.offsets;
    }
    return {.floats = floats_.get(), .offsets = offsets_.get()};
  }

 private:
  struct Free {
    void operator()(float* values) const {
      constexpr std::size_t kAlignment = 64;
      ::operator delete[](values, std::align_val_t(kAlignment));
    }
  };
  std::unique_ptr<float, Free> floats_;
  std::unique_ptr<std::ptrdiff_t[]> offsets_;
  std::size_t floats_size_ = 0;
  std::size_t offsets_size_ = 0;
};

Workspace& workspace() {
  thread_local Workspace mine;
  return mine;
}

std::optional<at::Tensor> convolved(const at::Tensor& input, const at::Tensor& weight,
                                    const c10::optional<at::Tensor>& bias,
                                    const Geometry& geometry) {
  const std::optional<lane_convolution::Shape> shape = shape_of(input, weight, geometry);
  const bool has_bias = bias.has_value() && bias->defined();
  if (!shape || (has_bias && !(is_dense_float(*bias) && bias->is_contiguous() &&
                               bias->numel() == shape->output_channels))) {
    return std::nullopt;
  }
  at::Tensor output =
      at::empty({shape->images, shape->output_channels, shape->rows.output, shape->columns.output},
                input.options(), format_of(shape->channels_last));
  const Kernels kernels = kernels_for(*shape);
  kernels.forward(*shape,
                  {.input = floats(input),
                   .weight = floats(weight),
                   .bias = has_bias ? floats(*bias) : nullptr,
                   .output = mutable_floats(output)},
                  workspace().of(kernels.forward_sizes(*shape)));
  return output;
}

at::Tensor convolution(c10::DispatchKeySet keys, const at::Tensor& input, const at::Tensor& weight,
                       const c10::optional<at::Tensor>& bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, std::int64_t groups) {
  if (auto output =
          convolved(input, weight, bias, {stride, padding, dilation, transposed, groups})) {
    return *std::move(output);
  }
  return at::_ops::convolution::redispatch(
      below(keys), input, weight, bias, libtorch::sizes(stride), libtorch::sizes(padding),
      libtorch::sizes(dilation), transposed, libtorch::sizes(output_padding), groups);
}

// True if oneDNN 2.6, which libtorch 1.13 calls, writes beyond its memory with AVX2: backward, with
// kernels of one weight and strides, channels last, and 2 to 7 channels of inputs. PyTorch crashes
// then, too. Contiguous images have the same gradients, and do not use that kernel.
bool breaks_onednn(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride) {
  constexpr std::int64_t kLanes = 8;
  return input.dim() == 4 && weight.dim() == 4 && weight.size(2) == 1 && weight.size(3) == 1 &&
         input.size(1) > 1 && input.size(1) < kLanes &&
         std::any_of(stride.begin(), stride.end(), [](std::int64_t step) { return step > 1; });
}

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Gradients convolution_backward(c10::DispatchKeySet keys, const at::Tensor& gradient,
                               const at::Tensor& input, const at::Tensor& weight,
                               libtorch::BiasSizes bias_sizes, at::IntArrayRef stride,
                               at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                               at::IntArrayRef output_padding, std::int64_t groups,
                               std::array<bool, 3> wanted) {
  const std::optional<lane_convolution::Shape> shape =
      shape_of(input, weight, {stride, padding, dilation, transposed, groups});
  if (!shape || !is_dense_float(gradient)) {
    const bool breaks = breaks_onednn(input, weight, stride);
    return at::_ops::convolution_backward::redispatch(
        below(keys), breaks ? gradient.contiguous() : gradient, breaks ? input.contiguous() : input,
        breaks ? weight.contiguous() : weight, libtorch::sizes(bias_sizes), libtorch::sizes(stride),
        libtorch::sizes(padding), libtorch::sizes(dilation), transposed,
        libtorch::sizes(output_padding), groups, wanted);
  }
  const at::Tensor dense = gradient.contiguous(format_of(shape->channels_last));
  Gradients gradients;
  auto& [of_input, of_weight, of_bias] = gradients;
  if (wanted[0]) of_input = at::empty_like(input);
  if (wanted[1]) of_weight = at::empty_like(weight);
  if (wanted[2]) of_bias = at::empty({shape->output_channels}, weight.options());
  const auto to = [](const at::Tensor& tensor) {
    return tensor.defined() ? mutable_floats(tensor) : nullptr;
  };
  const Kernels kernels = kernels_for(*shape);
  kernels.backward(*shape,
                   {.gradient = floats(dense),
                    .input = floats(input),
                    .weight = floats(weight),
                    .input_gradient = to(of_input),
                    .weight_gradient = to(of_weight),
                    .bias_gradient = to(of_bias)},
                   workspace().of(kernels.backward_sizes(*shape)));
  return gradients;
}

// The operator that traced modules call.
at::Tensor traced_convolution(c10::DispatchKeySet keys, const at::Tensor& input,
                              const at::Tensor& weight, const c10::optional<at::Tensor>& bias,
                              at::IntArrayRef stride, at::IntArrayRef padding,
                              at::IntArrayRef dilation, bool transposed,
                              at::IntArrayRef output_padding, std::int64_t groups, bool benchmark,
                              bool deterministic, bool cudnn_enabled, bool allow_tf32) {
  if (auto output =
          convolved(input, weight, bias, {stride, padding, dilation, transposed, groups})) {
    return *std::move(output);
  }
  return at::_ops::_convolution::redispatch(
      below(keys), input, weight, bias, libtorch::sizes(stride), libtorch::sizes(padding),
      libtorch::sizes(dilation), transposed, libtorch::sizes(output_padding), groups, benchmark,
      deterministic, cudnn_enabled, allow_tf32);
}

}  // namespace

void add_convolution(Registrations& registrations) {
  add_kernel(registrations, "aten::convolution", TORCH_FN(convolution));
  add_kernel(registrations, "aten::_convolution", TORCH_FN(traced_convolution));
  add_kernel(registrations, "aten::convolution_backward", TORCH_FN(convolution_backward));
}

}  // namespace rubato::operators
