#include "models.hpp"

#include <array>
#include <memory>
#include <string>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <rubato/core/choice.hpp>
#include <rubato/core/error.hpp>
#include <rubato/model/builtin_models.hpp>
#include <rubato/model/module.hpp>

namespace rubato::bench {

namespace nn = torch::nn;

namespace {

constexpr std::int64_t kPixels = 28;
constexpr std::int64_t kClasses = 10;

class Block : public nn::Module {
 public:
  Block(std::int64_t from, std::int64_t to, std::int64_t stride)
      : conv1_(convolution(from, to, 3, stride)),
        bn1_(to),
        conv2_(convolution(to, to, 3, 1)),
        bn2_(to) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("conv2", conv2_);
    register_module("bn2", bn2_);
    if (stride == 1 && from == to) return;
    shortcut_ = register_module("shortcut", convolution(from, to, 1, stride));
    shortcut_bn_ = register_module("shortcut_bn", nn::BatchNorm2d(to));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = bn2_(conv2_(at::relu(bn1_(conv1_(x)))));
    return at::relu(y + (shortcut_.is_empty() ? x : shortcut_bn_(shortcut_(x))));
  }

  static nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t kernel,
                                std::int64_t stride) {
    return nn::Conv2d(
        nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2).bias(false));
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
  nn::Conv2d shortcut_{nullptr};
  nn::BatchNorm2d shortcut_bn_{nullptr};
};

class Residual20 : public nn::Module {
 public:
  Residual20() {
    register_module("conv", conv_);
    register_module("bn", bn_);
    register_module("blocks", blocks_);
    register_module("fc", fc_);
    std::int64_t channels = 16;
    for (const std::int64_t to : {16, 32, 64}) {
      for (int i = 0; i < 3; ++i) {
        blocks_->push_back(std::make_shared<Block>(channels, to, to == channels ? 1 : 2));
        channels = to;
      }
    }
  }

  // Its channels fill libtorch's blocks, which are fastest where channels are last.
  at::Tensor forward(at::Tensor x) {
    x = at::relu(bn_(conv_(x.contiguous(at::MemoryFormat::ChannelsLast))));
    for (const auto& block : *blocks_) x = block->as<Block>()->forward(x);
    return at::log_softmax(fc_(x.mean(at::IntArrayRef{2, 3})), 1);
  }

 private:
  nn::Conv2d conv_ = Block::convolution(1, 16, 3, 1);
  nn::BatchNorm2d bn_{16};
  nn::ModuleList blocks_;
  nn::Linear fc_{64, kClasses};
};

class WideMlp : public nn::Module {
 public:
  WideMlp() {
    register_module("fc1", fc1_);
    register_module("fc2", fc2_);
    register_module("fc3", fc3_);
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::log_softmax(fc3_(at::relu(fc2_(at::relu(fc1_(x.flatten(1)))))), 1);
  }

 private:
  static constexpr std::int64_t kHidden = 1024;
  nn::Linear fc1_{kPixels * kPixels, kHidden};
  nn::Linear fc2_{kHidden, kHidden};
  nn::Linear fc3_{kHidden, kClasses};
};

constexpr std::int64_t kFeatures = 64;
constexpr std::int64_t kHeads = 4;

// Vaswani et al. 2017, with the normalisation before each part.
class EncoderLayer : public nn::Module {
 public:
  EncoderLayer() {
    register_module("norm1", norm1_);
    register_module("in", in_);
    register_module("out", out_);
    register_module("norm2", norm2_);
    register_module("fc1", fc1_);
    register_module("fc2", fc2_);
  }

  at::Tensor forward(at::Tensor x) {
    x = x + attention(norm1_(x));
    return x + fc2_(at::relu(fc1_(norm2_(x))));
  }

 private:
  at::Tensor attention(const at::Tensor& x) {
    const std::int64_t images = x.size(0);
    const std::int64_t tokens = x.size(1);
    constexpr std::int64_t kOfHead = kFeatures / kHeads;
    // [3, images, heads, tokens, features of a head]
    const at::Tensor all =
        in_(x).view({images, tokens, 3, kHeads, kOfHead}).permute({2, 0, 3, 1, 4});
    const at::Tensor scores =
        at::matmul(all[0], all[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(kOfHead));
    const at::Tensor mixed = at::matmul(at::softmax(scores, -1), all[2]);
    return out_(mixed.transpose(1, 2).reshape({images, tokens, kFeatures}));
  }

  static constexpr std::int64_t kHidden = 128;
  nn::LayerNorm norm1_{nn::LayerNormOptions({kFeatures})};
  nn::Linear in_{kFeatures, 3 * kFeatures};
  nn::Linear out_{kFeatures, kFeatures};
  nn::LayerNorm norm2_{nn::LayerNormOptions({kFeatures})};
  nn::Linear fc1_{kFeatures, kHidden};
  nn::Linear fc2_{kHidden, kFeatures};
};

class Transformer : public nn::Module {
 public:
  Transformer() {
    register_module("embed", embed_);
    places_ = register_parameter("places", at::zeros({kPixels, kFeatures}));
    for (auto& layer : layers_) layer = std::make_shared<EncoderLayer>();
    register_module("layer1", layers_[0]);
    register_module("layer2", layers_[1]);
    register_module("norm", norm_);
    register_module("fc", fc_);
  }

  at::Tensor forward(at::Tensor x) {
    x = embed_(x.flatten(1, 2)) + places_;
    for (const auto& layer : layers_) x = layer->forward(x);
    return at::log_softmax(fc_(norm_(x).mean(1)), 1);
  }

 private:
  nn::Linear embed_{kPixels, kFeatures};
  at::Tensor places_;
  std::array<std::shared_ptr<EncoderLayer>, 2> layers_;
  nn::LayerNorm norm_{nn::LayerNormOptions({kFeatures})};
  nn::Linear fc_{kFeatures, kClasses};
};

constexpr std::array<std::string_view, 4> kNames{"mnist-cnn", "residual-20", "wide-mlp",
                                                 "transformer"};

}  // namespace

std::span<const std::string_view> model_names() {
  return kNames;
}

ModelFactory model(std::string_view name) {
  if (name == "mnist-cnn") return builtin_model(name, {});
  if (name == "residual-20") return model_factory<Residual20>();
  if (name == "wide-mlp") return model_factory<WideMlp>();
  if (name == "transformer") return model_factory<Transformer>();
  throw Error(unknown_name_message("model", name, kNames));
}

}  // namespace rubato::bench
