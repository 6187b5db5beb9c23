#include "residual_network.hpp"

#include <memory>

#include <ATen/Functions.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <rubato/libtorch/module.hpp>

namespace rubato {

namespace {

torch::nn::Conv2d same_size_convolution(std::int64_t from, std::int64_t to, std::int64_t kernel,
                                        std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
}

class ResidualBlock : public torch::nn::Module {
 public:
  ResidualBlock(std::int64_t from, std::int64_t to, std::int64_t stride)
      : conv1_(same_size_convolution(from, to, 3, stride)),
        bn1_(to),
        conv2_(same_size_convolution(to, to, 3, 1)),
        bn2_(to) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("conv2", conv2_);
    register_module("bn2", bn2_);
    if (from == to) return;
    shortcut_ = register_module("shortcut", same_size_convolution(from, to, 1, stride));
    shortcut_bn_ = register_module("shortcut_bn", torch::nn::BatchNorm2d(to));
  }

  // Operators are in place if backward needs only their result.
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = bn2_(conv2_(bn1_(conv1_(x)).relu_()));
    return y.add_(shortcut_.is_empty() ? x : shortcut_bn_(shortcut_(x))).relu_();
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::BatchNorm2d bn1_;
  torch::nn::Conv2d conv2_;
  torch::nn::BatchNorm2d bn2_;
  torch::nn::Conv2d shortcut_{nullptr};
  torch::nn::BatchNorm2d shortcut_bn_{nullptr};
};

class ResNet20 : public torch::nn::Module {
 public:
  ResNet20(std::int64_t width, const ImageShape& shape)
      : conv_(same_size_convolution(shape.channels, width, 3, 1)),
        bn_(width),
        fc_(4 * width, shape.classes) {
    register_module("conv", conv_);
    register_module("bn", bn_);
    register_module("blocks", blocks_);
    register_module("fc", fc_);
    std::int64_t from = width;
    for (const std::int64_t to : {width, 2 * width, 4 * width}) {
      for (int i = 0; i < 3; ++i) {
        blocks_->push_back(std::make_shared<ResidualBlock>(from, to, from == to ? 1 : 2));
        from = to;
      }
    }
  }

  // Convolutions and normalisations are fastest if the channels are the last dimension in memory.
  // This layout is set after the first convolution: an image of one channel has no other layout.
  at::Tensor forward(at::Tensor x) {
    x = bn_(conv_(x).contiguous(at::MemoryFormat::ChannelsLast)).relu_();
    for (const auto& block : *blocks_) x = block->as<ResidualBlock>()->forward(x);
    return at::log_softmax(fc_(x.mean(at::IntArrayRef{2, 3})), 1);
  }

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d bn_;
  torch::nn::ModuleList blocks_;
  torch::nn::Linear fc_;
};

}  // namespace

ModelFactory residual_network(const ResidualOptions& options, const ImageShape& shape) {
  return model_factory<ResNet20>(options.width, shape);
}

}  // namespace rubato
