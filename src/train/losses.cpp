#include <ATen/Functions.h>

#include <rubato/train/losses.hpp>

namespace rubato {

Loss nll_loss() {
  return [](const at::Tensor& output, const at::Tensor& target) {
    return at::nll_loss(output, target);
  };
}

Loss cross_entropy_loss() {
  return [](const at::Tensor& output, const at::Tensor& target) {
    return at::cross_entropy_loss(output, target);
  };
}

Loss mse_loss() {
  return [](const at::Tensor& output, const at::Tensor& target) {
    return at::mse_loss(output, target);
  };
}

}  // namespace rubato
