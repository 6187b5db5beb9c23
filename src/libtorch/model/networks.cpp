// This file defines the initializers and the two larger built-in networks. An initializer fills
// tensors of two or more dimensions and sets biases to zero; other vectors, such as the weights of
// normalisations, keep their values. The residual network is that of K. He et al., "Deep Residual
// Learning for Image Recognition", CVPR 2016, with projections (option B) where the width changes.
// The transformer normalises before attention and before the perceptron (R. Xiong et al., "On Layer
// Normalization in the Transformer Architecture", ICML 2020), and adds learned positions to its
// tokens. The order in which modules are registered is that of Model::parameters, in which
// initialize() draws values.

#include "networks.hpp"

#include <memory>
#include <string_view>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <rubato/libtorch/module.hpp>

#include "libtorch/operators/operators.hpp"

namespace rubato {

namespace {

namespace init = torch::nn::init;

void fill_weight(const at::Tensor& weight, const InitializerOptions& options) {
  switch (options.kind) {
    case InitializerKind::standard:
      break;
    case InitializerKind::xavier:
      options.normal ? init::xavier_normal_(weight, options.gain)
                     : init::xavier_uniform_(weight, options.gain);
      break;
    case InitializerKind::msra: {
      const init::FanModeType fan = options.fan == FanMode::in ? init::FanModeType(torch::kFanIn)
                                                               : init::FanModeType(torch::kFanOut);
      options.normal ? init::kaiming_normal_(weight, options.slope, fan)
                     : init::kaiming_uniform_(weight, options.slope, fan);
      break;
    }
    case InitializerKind::orthogonal:
      init::orthogonal_(weight, options.gain);
      break;
    case InitializerKind::normal:
      init::normal_(weight, options.mean, options.deviation);
      break;
    case InitializerKind::uniform:
      init::uniform_(weight, options.low, options.high);
      break;
    case InitializerKind::one:
      init::ones_(weight);
      break;
    case InitializerKind::zero:
      init::zeros_(weight);
      break;
  }
}

bool is_bias(std::string_view name) {
  return name == "bias" || name.ends_with(".bias");
}

}  // namespace

void initialize(const Model& model, const InitializerOptions& options) {
  if (options.kind == InitializerKind::standard) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : model.parameters) {
    if (tensor.dim() >= 2) {
      fill_weight(tensor, options);
    } else if (is_bias(name)) {
      tensor.zero_();
    }
  }
}

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
  ResNet20(std::int64_t width, const DataShape& shape)
      : conv_(same_size_convolution(shape.channels, width, 3, 1)),
        bn_(width),
        fc_(4 * width, shape.outputs) {
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
  // This layout is set after the first convolution, because an image of one channel has every
  // layout; that convolution writes it itself if it is given such an image with this layout's
  // strides.
  at::Tensor forward(at::Tensor x) {
    if (x.size(1) == 1) x = x.reshape({x.size(0), x.size(2), x.size(3), 1}).permute({0, 3, 1, 2});
    x = bn_(conv_(x).contiguous(at::MemoryFormat::ChannelsLast)).relu_();
    for (const auto& block : *blocks_) x = block->as<ResidualBlock>()->forward(x);
    // The mean over the pixels, by operators whose gradient has channels last, too.
    return at::log_softmax(fc_(x.permute({0, 2, 3, 1}).flatten(1, 2).mean(1)), 1);
  }

 private:
  torch::nn::Conv2d conv_;
  torch::nn::BatchNorm2d bn_;
  torch::nn::ModuleList blocks_;
  torch::nn::Linear fc_;
};

}  // namespace

ModelFactory residual_network(const ResidualOptions& options, const DataShape& data) {
  return model_factory<ResNet20>(options.width, data);
}

namespace {

class EncoderLayer : public torch::nn::Module {
 public:
  explicit EncoderLayer(const TransformerOptions& options)
      : options_(options),
        norm1_(torch::nn::LayerNormOptions({options.dim})),
        in_(options.dim, 3 * options.dim),
        out_(options.dim, options.dim),
        norm2_(torch::nn::LayerNormOptions({options.dim})),
        fc1_(options.dim, options.hidden),
        fc2_(options.hidden, options.dim) {
    register_module("norm1", norm1_);
    register_module("in_proj", in_);
    register_module("out_proj", out_);
    register_module("norm2", norm2_);
    register_module("fc1", fc1_);
    register_module("fc2", fc2_);
  }

  // Maps [samples, tokens, dim] to the same shape. `hidden`, [tokens, tokens], says which tokens a
  // token does not see; undefined hides none.
  at::Tensor forward(at::Tensor x, const at::Tensor& hidden) {
    x = x + dropped(attention(norm1_(x), hidden));
    return x + dropped(fc2_(at::relu(fc1_(norm2_(x)))));
  }

 private:
  [[nodiscard]] at::Tensor dropped(const at::Tensor& x) const {
    return options_.dropout == 0 ? x : at::dropout(x, options_.dropout, is_training());
  }

  at::Tensor attention(const at::Tensor& x, const at::Tensor& hidden) {
    return out_(attention_of(in_(x), options_.heads, hidden));
  }

  TransformerOptions options_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear in_;
  torch::nn::Linear out_;
  torch::nn::LayerNorm norm2_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};

class Transformer : public torch::nn::Module {
 public:
  Transformer(const TransformerOptions& options, const DataShape& data)
      : norm_(torch::nn::LayerNormOptions({options.dim})), fc_(options.dim, data.outputs) {
    const bool of_tokens = data.vocabulary > 0;
    const std::int64_t tokens = of_tokens ? data.width : data.height;
    places_ = register_parameter("places", at::zeros({tokens, options.dim}));
    for (std::int64_t i = 0; i < options.layers; ++i) {
      layers_->push_back(std::make_shared<EncoderLayer>(options));
    }
    if (of_tokens) {
      tokens_ = register_module("embed", torch::nn::Embedding(data.vocabulary, options.dim));
      later_ = at::ones({tokens, tokens}, at::kBool).triu(1);
    } else {
      rows_ = register_module("embed", torch::nn::Linear(data.channels * data.width, options.dim));
    }
    // The modules after the embedding follow in the order of computation.
    register_module("layers", layers_);
    register_module("norm", norm_);
    register_module("fc", fc_);
  }

  at::Tensor forward(const at::Tensor& x) {
    if (tokens_.is_empty()) {
      const at::Tensor rows = rows_(x.transpose(1, 2).flatten(2));
      return at::log_softmax(fc_(encoded(rows).mean(1)), 1);
    }
    return at::log_softmax(fc_(encoded(tokens_(x))), -1);
  }

 private:
  at::Tensor encoded(at::Tensor x) {
    x = x + places_;
    for (const auto& layer : *layers_) x = layer->as<EncoderLayer>()->forward(x, later_);
    return norm_(x);
  }

  // One of the two is set: rows_ for images, tokens_ for sequences.
  torch::nn::Linear rows_{nullptr};
  torch::nn::Embedding tokens_{nullptr};
  at::Tensor places_;
  // True at [i, j] if token j comes after token i; undefined if all tokens see each other.
  at::Tensor later_;
  torch::nn::ModuleList layers_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear fc_;
};

}  // namespace

ModelFactory transformer(const TransformerOptions& options, const DataShape& data) {
  return model_factory<Transformer>(options, data);
}

}  // namespace rubato
