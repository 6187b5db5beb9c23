#pragma once

#include <ATen/Functions.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

namespace rubato::test {

/// Convolution, batch normalisation and dropout on 28 x 28 images: all that could depend on who
/// computes it.
struct DropoutNet : torch::nn::Module {
  torch::nn::Conv2d conv =
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 3)));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(6));
  torch::nn::Dropout dropout = register_module("dropout", torch::nn::Dropout(0.5));
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(150, 10));

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor features = at::relu(norm(conv(at::avg_pool2d(x, 4))));
    return at::log_softmax(linear(dropout(features.flatten(1))), 1);
  }
};

}  // namespace rubato::test
