// This file defines the small built-in networks and the table that makes all of them by name;
// networks.cpp defines resnet20 and the transformer. Tensors have the names of the models' twins in
// Python (docs/models.md), so that weights move between the two. Networks of classes end in a
// log-softmax. models() (loop/recipe/models.hpp) describes arguments and accepted data for every
// engine; a model that libtorch computes needs a row there and one in kMakers.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/libtorch/model.hpp>
#include <rubato/libtorch/module.hpp>

#include "base/core/throw_error.hpp"
#include "networks.hpp"

namespace rubato {

namespace nn = torch::nn;

namespace {

class MnistCnn : public nn::Module {
 public:
  MnistCnn() {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("conv2", conv2_);
    register_module("bn2", bn2_);
    register_module("fc1", fc1_);
    register_module("fc2", fc2_);
  }

  at::Tensor forward(at::Tensor x) {
    x = bn1_(at::relu(at::max_pool2d(conv1_(x), {2, 2})));
    x = bn2_(at::relu(at::max_pool2d(conv2_(x), {2, 2})));
    x = at::relu(fc1_(x.flatten(1)));
    return at::log_softmax(fc2_(x), 1);
  }

 private:
  nn::Conv2d conv1_{nn::Conv2dOptions(1, 10, 5)};
  nn::BatchNorm2d bn1_{10};
  nn::Conv2d conv2_{nn::Conv2dOptions(10, 20, 5)};
  nn::BatchNorm2d bn2_{20};
  nn::Linear fc1_{320, 50};
  nn::Linear fc2_{50, 10};
};

class Mlp : public nn::Module {
 public:
  enum class Outputs { log_probabilities, numbers };

  Mlp(const PerceptronOptions& options, std::int64_t inputs, std::int64_t outputs, Outputs kind)
      : activation_(options.activation), kind_(kind) {
    for (const std::int64_t width : options.hidden) {
      add(inputs, width);
      inputs = width;
    }
    add(inputs, outputs);
  }

  at::Tensor forward(at::Tensor x) {
    x = layers_.front()(x.flatten(1));
    for (std::size_t i = 1; i < layers_.size(); ++i) {
      x = layers_[i](activation_ == Activation::relu ? at::relu(x) : at::tanh(x));
    }
    return kind_ == Outputs::numbers ? x : at::log_softmax(x, 1);
  }

 private:
  // Registers linear1, linear2 and so on.
  void add(std::int64_t inputs, std::int64_t outputs) {
    layers_.emplace_back(inputs, outputs);
    register_module(fmt::format("linear{}", layers_.size()), layers_.back());
  }

  Activation activation_;
  Outputs kind_;
  std::vector<nn::Linear> layers_;
};

class Softmax : public nn::Module {
 public:
  Softmax(std::int64_t inputs, std::int64_t classes) : linear_(inputs, classes) {
    register_module("linear", linear_);
  }

  at::Tensor forward(const at::Tensor& x) { return at::log_softmax(linear_(x.flatten(1)), 1); }

 private:
  nn::Linear linear_;
};

// Rows or columns of an image behind ToyNet's convolutions: two of 3x3 and a pooling of 2, twice.
constexpr std::int64_t after_toy_convolutions(std::int64_t pixels) {
  return ((pixels - 4) / 2 - 4) / 2;
}

class ToyNet : public nn::Module {
 public:
  explicit ToyNet(const DataShape& shape)
      : conv_(convolution(shape.channels, 64), nn::BatchNorm2d(64), nn::ReLU(),  //
              convolution(64, 128), nn::BatchNorm2d(128), nn::ReLU(), nn::MaxPool2d(2),
              convolution(128, 256), nn::BatchNorm2d(256), nn::ReLU(),  //
              convolution(256, kChannels), nn::BatchNorm2d(kChannels), nn::ReLU(),
              nn::MaxPool2d(2)),
        dense_(nn::Flatten(),
               nn::Linear(kChannels * after_toy_convolutions(shape.height) *
                              after_toy_convolutions(shape.width),
                          kHidden),
               nn::BatchNorm1d(kHidden), nn::ReLU(), nn::Linear(kHidden, shape.outputs)) {
    register_module("conv", conv_);
    register_module("dense", dense_);
  }

  at::Tensor forward(const at::Tensor& x) {
    return at::log_softmax(dense_->forward(conv_->forward(x)), 1);
  }

 private:
  static constexpr std::int64_t kChannels = 512;
  static constexpr std::int64_t kHidden = 512;

  static nn::Conv2d convolution(std::int64_t from, std::int64_t to) {
    return nn::Conv2d(nn::Conv2dOptions(from, to, 3));
  }

  nn::Sequential conv_;
  nn::Sequential dense_;
};

// The makers of the models that models() says libtorch computes.
struct Maker {
  std::string_view name;
  ModelFactory (*make)(const ModelOptions& options, const DataShape& data);
};

constexpr std::array<Maker, 6> kMakers{
    {{"mnist-cnn", [](const ModelOptions&, const DataShape&) { return model_factory<MnistCnn>(); }},
     {"mlp",
      [](const ModelOptions& options, const DataShape& data) {
        return model_factory<Mlp>(
            std::get<PerceptronOptions>(options), data.features(), data.outputs,
            data.real_targets ? Mlp::Outputs::numbers : Mlp::Outputs::log_probabilities);
      }},
     {"softmax",
      [](const ModelOptions&, const DataShape& data) {
        return model_factory<Softmax>(data.features(), data.outputs);
      }},
     {"toy-net",
      [](const ModelOptions&, const DataShape& data) { return model_factory<ToyNet>(data); }},
     {"resnet20",
      [](const ModelOptions& options, const DataShape& data) {
        return residual_network(std::get<ResidualOptions>(options), data);
      }},
     {"transformer", [](const ModelOptions& options, const DataShape& data) {
        return transformer(std::get<TransformerOptions>(options), data);
      }}}};

constexpr std::array<std::string_view, kMakers.size()> kNames = [] {
  std::array<std::string_view, kMakers.size()> names{};
  std::ranges::transform(kMakers, names.begin(), &Maker::name);
  return names;
}();

// Throws Error for a model that does not take the data.
void require_taken(const ModelEntry& model, const DataShape& data) {
  if (model.takes(data)) return;
  std::vector<std::string_view> others;
  for (const std::string_view name : kNames) {
    if (find_row("model", name, models()).takes(data)) others.push_back(name);
  }
  const std::string why =
      data.vocabulary > 0 ? "takes images, the data are sequences of tokens"
      : data.real_targets
          ? "tells classes apart, the data have real targets"
          : fmt::format("takes {}, the data has {} x {} x {} in {} classes", model.images,
                        data.channels, data.height, data.width, data.outputs);
  throw_error("model {} {}; accepted for these: {}", model.name, why, fmt::join(others, ", "));
}

}  // namespace

std::span<const std::string_view> builtin_model_names() {
  return kNames;
}

ModelFactory builtin_model_for(std::string_view text, const DataShape& data) {
  const std::string name = Spec(text).name();
  const auto* const maker = std::ranges::find(kMakers, name, &Maker::name);
  if (maker == kMakers.end()) throw Error(unknown_name_message("model", name, kNames));
  const ParsedModel model = parse_model(text);
  require_taken(model.entry, data);
  return maker->make(model.options, data);
}

ModelFactory builtin_model(std::string_view model, const ImageShape& shape) {
  return builtin_model_for(model, {.channels = shape.channels,
                                   .height = shape.height,
                                   .width = shape.width,
                                   .outputs = shape.classes});
}

ModelFactory regression_model(std::string_view model, std::int64_t inputs, std::int64_t outputs) {
  return builtin_model_for(
      model, {.height = 1, .width = inputs, .outputs = outputs, .real_targets = true});
}

ModelFactory sequence_model(std::string_view model, const SequenceShape& shape) {
  return builtin_model_for(model, {.height = 1,
                                   .width = shape.tokens,
                                   .outputs = shape.classes,
                                   .vocabulary = shape.vocabulary});
}

}  // namespace rubato
