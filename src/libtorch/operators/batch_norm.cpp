// These functions replace aten::native_batch_norm and its backward. Each call is checked: rubato's
// kernels compute dense float32 tensors in training, and backward only with channels last; all
// other calls are passed on to libtorch with the remaining dispatch keys. The numbers for each
// channel are computed here in double, the loops over all values in batch_norm_kernels.cpp. The
// saved mean and inverse deviation have libtorch's type and meaning, so forward and backward of one
// normalisation may be computed by different libraries.

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>

#include "batch_norm_kernels.hpp"
#include "dispatch.hpp"

namespace rubato::operators {

namespace {

using MaybeTensor = c10::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

bool is_there(const MaybeTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

// True if the tensor is missing, or has one float for each channel.
bool is_of_channels(const MaybeTensor& tensor, std::int64_t channels) {
  return !is_there(tensor) ||
         (is_dense_float(*tensor) && tensor->is_contiguous() && tensor->numel() == channels);
}

// The normalisation, if rubato's kernels can compute it.
std::optional<batch_norm::Shape> shape_of(const at::Tensor& input, bool training) {
  if (!current().batch_norm || !training || !is_dense_float(input) || input.dim() < 2) {
    return std::nullopt;
  }
  const bool channels_last = input.dim() == 4 && is_channels_last(input);
  if (!channels_last && !input.is_contiguous()) return std::nullopt;
  batch_norm::Shape shape{.outer = input.size(0),
                          .channels = input.size(1),
                          .inner = input.numel() / (input.size(0) * input.size(1)),
                          .channels_last = channels_last};
  // Both layouts are the same then.
  if (shape.inner == 1) shape.channels_last = true;
  return shape;
}

std::size_t size_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

// Advances running statistics in place: (1 - momentum) running + momentum value.
void advance(const MaybeTensor& running, const std::vector<double>& values, double momentum,
             double factor) {
  if (!is_there(running)) return;
  float* const to = mutable_floats(*running);
  for (std::size_t c = 0; c < values.size(); ++c) {
    to[c] = static_cast<float>(momentum * (values[c] * factor) + (1 - momentum) * to[c]);
  }
}

Three normalise(c10::DispatchKeySet keys, const at::Tensor& input, const MaybeTensor& weight,
                const MaybeTensor& bias, const MaybeTensor& running_mean,
                const MaybeTensor& running_var, bool training, double momentum, double eps) {
  const std::optional<batch_norm::Shape> shape = shape_of(input, training);
  if (!shape || !is_of_channels(weight, shape->channels) ||
      !is_of_channels(bias, shape->channels) || !is_of_channels(running_mean, shape->channels) ||
      !is_of_channels(running_var, shape->channels)) {
    return at::_ops::native_batch_norm::redispatch(below(keys), input, weight, bias, running_mean,
                                                   running_var, training, momentum, eps);
  }
  const std::size_t channels = size_of(shape->channels);
  std::vector<double> mean(channels);
  std::vector<double> variance(channels);
  batch_norm::mean_and_variance(*shape, floats(input), mean.data(), variance.data());
  const auto count = static_cast<double>(shape->of_channel());
  advance(running_mean, mean, momentum, 1);
  advance(running_var, variance, momentum, count / (count - 1));

  at::Tensor output = at::empty_like(input);
  at::Tensor save_mean = at::empty({shape->channels}, input.options());
  at::Tensor save_invstd = at::empty({shape->channels}, input.options());
  std::vector<float> alpha(channels);
  std::vector<float> beta(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double invstd = 1 / std::sqrt(variance[c] + eps);
    const double slope = (is_there(weight) ? floats(*weight)[c] : 1) * invstd;
    mutable_floats(save_mean)[c] = static_cast<float>(mean[c]);
    mutable_floats(save_invstd)[c] = static_cast<float>(invstd);
    alpha[c] = static_cast<float>(slope);
    beta[c] = static_cast<float>((is_there(bias) ? floats(*bias)[c] : 0) - mean[c] * slope);
  }
  batch_norm::scale_and_shift(*shape, floats(input), alpha.data(), beta.data(),
                              mutable_floats(output));
  return {output, save_mean, save_invstd};
}

Three normalise_backward(c10::DispatchKeySet keys, const at::Tensor& gradient,
                         const at::Tensor& input, const MaybeTensor& weight,
                         const MaybeTensor& running_mean, const MaybeTensor& running_var,
                         const MaybeTensor& save_mean, const MaybeTensor& save_invstd,
                         bool training, double eps, std::array<bool, 3> wanted) {
  const std::optional<batch_norm::Shape> shape = shape_of(input, training);
  // libtorch's backward is as fast for contiguous images.
  if (!shape || !shape->channels_last || !is_dense_float(gradient) ||
      !is_of_channels(weight, shape->channels) || !is_there(save_mean) || !is_there(save_invstd) ||
      !is_of_channels(save_mean, shape->channels) ||
      !is_of_channels(save_invstd, shape->channels)) {
    return at::_ops::native_batch_norm_backward::redispatch(below(keys), gradient, input, weight,
                                                            running_mean, running_var, save_mean,
                                                            save_invstd, training, eps, wanted);
  }
  const at::Tensor dense =
      gradient.contiguous(format_of(input.dim() == 4 && is_channels_last(input)));
  const std::size_t channels = size_of(shape->channels);
  std::vector<double> sum(channels);
  std::vector<double> dot(channels);
  const float* const mean = floats(*save_mean);
  const float* const invstd = floats(*save_invstd);
  batch_norm::gradient_sums(*shape, floats(dense), floats(input), mean, sum.data(), dot.data());

  Three gradients;
  auto& [of_input, of_weight, of_bias] = gradients;
  if (wanted[1]) {
    of_weight = at::empty({shape->channels}, input.options());
    for (std::size_t c = 0; c < channels; ++c) {
      mutable_floats(of_weight)[c] = static_cast<float>(dot[c] * invstd[c]);
    }
  }
  if (wanted[2]) {
    of_bias = at::empty({shape->channels}, input.options());
    for (std::size_t c = 0; c < channels; ++c) {
      mutable_floats(of_bias)[c] = static_cast<float>(sum[c]);
    }
  }
  if (!wanted[0]) return gradients;
  const auto count = static_cast<double>(shape->of_channel());
  std::vector<float> shift(channels);
  std::vector<float> slope(channels);
  std::vector<float> alpha(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double scale = invstd[c];
    shift[c] = static_cast<float>(sum[c] / count);
    slope[c] = static_cast<float>(dot[c] * scale * scale / count);
    alpha[c] = static_cast<float>((is_there(weight) ? floats(*weight)[c] : 1) * scale);
  }
  of_input = at::empty_like(input);
  batch_norm::input_gradient(
      *shape, floats(dense), floats(input),
      {.shift = shift.data(), .mean = mean, .slope = slope.data(), .alpha = alpha.data()},
      mutable_floats(of_input));
  return gradients;
}

}  // namespace

void add_batch_norm(Registrations& registrations) {
  add_kernel(registrations, "aten::native_batch_norm", TORCH_FN(normalise));
  add_kernel(registrations, "aten::native_batch_norm_backward", TORCH_FN(normalise_backward));
}

}  // namespace rubato::operators
