#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/torch/losses.hpp>

namespace rubato {

namespace {

double checked(double label_smoothing) {
  if (label_smoothing >= 0 && label_smoothing < 1) return label_smoothing;
  throw Error(
      fmt::format("label smoothing {}: accepted are values from 0 to below 1", label_smoothing));
}

}  // namespace

Loss nll_loss(double label_smoothing) {
  const double spread = checked(label_smoothing);
  if (spread == 0) {
    return [](const at::Tensor& output, const at::Tensor& target) {
      return at::nll_loss(output, target);
    };
  }
  return [spread](const at::Tensor& output, const at::Tensor& target) {
    return (1 - spread) * at::nll_loss(output, target) - spread * output.mean();
  };
}

Loss cross_entropy_loss(double label_smoothing) {
  const double spread = checked(label_smoothing);
  return [spread](const at::Tensor& output, const at::Tensor& target) {
    return at::cross_entropy_loss(output, target, /*weight=*/at::Tensor(), at::Reduction::Mean,
                                  /*ignore_index=*/-100, spread);
  };
}

Loss mse_loss() {
  return [](const at::Tensor& output, const at::Tensor& target) {
    return at::mse_loss(output, target);
  };
}

}  // namespace rubato
