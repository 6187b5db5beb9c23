#pragma once

#include <ATen/Functions.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

namespace rubato::test {

/// Convolution, batch normalisation and dropout on 28 x 28 images: all that could depend on who
/// computes it.
class DropoutNet : public torch::nn::Module {
 public:
  DropoutNet() {
    register_module("conv", conv_);
    register_module("norm", norm_);
    register_module("dropout", dropout_);
    register_module("linear", linear_);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor features = at::relu(norm_(conv_(at::avg_pool2d(x, 4))));
    return at::log_softmax(linear_(dropout_(features.flatten(1))), 1);
  }

 private:
  torch::nn::Conv2d conv_{torch::nn::Conv2dOptions(1, 6, 3)};
  torch::nn::BatchNorm2d norm_{6};
  torch::nn::Dropout dropout_{0.5};
  torch::nn::Linear linear_{150, 10};
};

}  // namespace rubato::test
