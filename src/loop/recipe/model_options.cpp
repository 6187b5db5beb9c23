// This file knows initializers and models as far as that is possible without the libraries that
// compute them: names, help, arguments, the data that a model takes, and its number of parameters.
// kModels is the only list of models; the code that computes them looks its rows up by name. The
// numbers of parameters are formulas that repeat the layers of the networks in
// libtorch/model/networks.cpp, so that the size of a gradient is known without libtorch;
// tests/model/builtin_models_test.cpp compares them with the networks.

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/text/options_row.hpp"
#include "base/core/throw_error.hpp"
#include "models.hpp"

namespace rubato {

namespace {

constexpr std::array<Choice<bool>, 2> kDistributions{{{false, "uniform"}, {true, "normal"}}};
constexpr std::array<Choice<FanMode>, 2> kFans{{{FanMode::in, "in"}, {FanMode::out, "out"}}};

bool read_distribution(Spec& spec) {
  return spec.choice("distribution", false, kDistributions);
}

void read_nothing(Spec& /*spec*/, InitializerOptions& /*options*/) {}

void read_xavier(Spec& spec, InitializerOptions& options) {
  options.normal = read_distribution(spec);
  options.gain = spec.real("gain", options.gain, kPositive);
}

void read_msra(Spec& spec, InitializerOptions& options) {
  options.normal = read_distribution(spec);
  options.slope = spec.real("slope", options.slope, kAnyReal);
  options.fan = spec.choice("fan", options.fan, kFans);
}

void read_orthogonal(Spec& spec, InitializerOptions& options) {
  options.gain = spec.real("gain", options.gain, kPositive);
}

void read_normal(Spec& spec, InitializerOptions& options) {
  options.mean = spec.real("mean", options.mean, kAnyReal);
  options.deviation = spec.real("deviation", options.deviation, kNotNegative);
}

void read_uniform(Spec& spec, InitializerOptions& options) {
  options.low = spec.real("low", options.low, kAnyReal);
  options.high = spec.real("high", options.high, kAnyReal);
  if (!(options.low < options.high)) spec.reject("low", "it must be below high");
}

using InitializerRow = OptionsRow<InitializerOptions, InitializerKind>;

constexpr std::array<InitializerRow, kInitializers.size()> kInitializerRows{
    options_row(kInitializers, InitializerKind::standard,
                "the values that the model's constructor sets", read_nothing),
    options_row(kInitializers, InitializerKind::xavier,
                "variance gain^2 2 / (inputs + outputs) (Glorot and Bengio 2010)", read_xavier),
    options_row(kInitializers, InitializerKind::msra,
                "variance 2 / ((1 + slope^2) fan), for a leaky ReLU of that slope (He et al. 2015)",
                read_msra),
    options_row(kInitializers, InitializerKind::orthogonal,
                "orthogonal matrices times gain (Saxe et al. 2014)", read_orthogonal),
    options_row(kInitializers, InitializerKind::normal, "a normal distribution", read_normal),
    options_row(kInitializers, InitializerKind::uniform, "a uniform distribution", read_uniform),
    options_row(kInitializers, InitializerKind::one, "all 1", read_nothing),
    options_row(kInitializers, InitializerKind::zero, "all 0", read_nothing)};

}  // namespace

InitializerOptions parse_initializer(std::string_view text) {
  return parse_options("initializer", text, kInitializerRows, &InitializerOptions::kind);
}

std::vector<Strategy> initializers() {
  return strategies_of(kInitializerRows);
}

std::int64_t dense_parameters(std::int64_t inputs, std::span<const std::int64_t> hidden,
                              std::int64_t outputs) {
  std::int64_t parameters = 0;
  for (const std::int64_t width : hidden) {
    parameters += (inputs + 1) * width;
    inputs = width;
  }
  return parameters + (inputs + 1) * outputs;
}

namespace {

constexpr std::int64_t kMostDimensions = 1'000'000'000;
constexpr RealRange kCondition{1, kLargestReal, true, true, "a number of at least 1"};

void require_whole(std::string_view name, std::int64_t value, std::int64_t max) {
  if (value >= 1 && value <= max) return;
  throw_error("quadratic: {} {}; accepted: 1 to {}", name, value, max);
}

void require_real(std::string_view name, double value, const RealRange& range) {
  if (range.holds(value)) return;
  throw_error("quadratic: {} {}; accepted: {}", name, value, range.accepted_for(value));
}

}  // namespace

void require_valid(const QuadraticOptions& options) {
  require_whole("dim", options.dim, kMostDimensions);
  require_whole("samples", options.samples, kMaxDatasetSize);
  require_real("noise", options.noise, kNotNegative);
  if (!options.condition) return;
  require_real("condition", *options.condition, kCondition);
  if (options.dim == 1 && *options.condition != 1) {
    throw_error("quadratic: condition {} in one dimension; accepted there: 1", *options.condition);
  }
}

namespace {

// Two layers of this width have 2^40 weights.
constexpr std::int64_t kWidest = std::int64_t{1} << 20;
constexpr std::int64_t kMostChannels = 4096;
constexpr std::int64_t kMostLayers = 1000;

ModelOptions read_perceptron(Spec& spec) {
  PerceptronOptions options;
  options.hidden = spec.wholes("hidden", options.hidden, 1, kWidest);
  options.activation = spec.choice("activation", options.activation, kActivations);
  return options;
}

ModelOptions read_residual(Spec& spec) {
  return ResidualOptions{.width = spec.whole("width", ResidualOptions().width, 1, kMostChannels)};
}

ModelOptions read_transformer(Spec& spec) {
  TransformerOptions options;
  options.layers = spec.whole("layers", options.layers, 1, kMostLayers);
  options.heads = spec.whole("heads", options.heads, 1, kWidest);
  options.dim = spec.whole("dim", options.dim, 1, kWidest);
  options.hidden = spec.whole("hidden", options.hidden, 1, kWidest);
  options.dropout = spec.real("dropout", options.dropout, kBelowOne);
  if (options.dim % options.heads != 0) {
    spec.reject("heads",
                fmt::format("{} heads cannot share {} features; accepted: a divisor of dim",
                            options.heads, options.dim));
  }
  return options;
}

ModelOptions read_quadratic(Spec& spec) {
  QuadraticOptions options;
  options.dim = spec.whole("dim", options.dim, 1, kMostDimensions);
  options.condition = spec.real("condition", Unset{"dim"}, kCondition);
  options.noise = spec.real("noise", options.noise, kNotNegative);
  options.samples = spec.whole("samples", options.samples, 1, kMaxDatasetSize);
  require_valid(options);
  return options;
}

// Numbers of parameters: of weights and biases, of the same with a batch normalisation, and of a
// convolution without biases with one.
constexpr std::int64_t linear(std::int64_t from, std::int64_t to) {
  return (from + 1) * to;
}
constexpr std::int64_t normalised(std::int64_t from, std::int64_t to) {
  return linear(from, to) + 2 * to;
}
constexpr std::int64_t convolution(std::int64_t from, std::int64_t to, std::int64_t side) {
  return from * to * side * side + 2 * to;
}

std::int64_t parameters_of_mnist_cnn(const ModelOptions& /*none*/, const DataShape& /*digits*/) {
  constexpr std::int64_t kWindow = 25;
  return normalised(kWindow, 10) + normalised(kWindow * 10, 20) + linear(320, 50) + linear(50, 10);
}

std::int64_t parameters_of_perceptron(const ModelOptions& options, const DataShape& data) {
  return dense_parameters(data.features(), std::get<PerceptronOptions>(options).hidden,
                          data.outputs);
}

std::int64_t parameters_of_softmax(const ModelOptions& /*none*/, const DataShape& data) {
  return linear(data.features(), data.outputs);
}

// Pixels along a side after two convolutions of 3x3 and a pooling of 2, twice.
constexpr std::int64_t after_toy_convolutions(std::int64_t pixels) {
  return std::max<std::int64_t>(0, ((pixels - 4) / 2 - 4) / 2);
}

std::int64_t parameters_of_toy_net(const ModelOptions& /*none*/, const DataShape& data) {
  constexpr std::int64_t kWindow = 9;
  const std::int64_t pixels =
      after_toy_convolutions(data.height) * after_toy_convolutions(data.width);
  return normalised(kWindow * data.channels, 64) + normalised(kWindow * 64, 128) +
         normalised(kWindow * 128, 256) + normalised(kWindow * 256, 512) +
         normalised(512 * pixels, 512) + linear(512, data.outputs);
}

std::int64_t parameters_of_residual(const ModelOptions& options, const DataShape& data) {
  std::int64_t from = std::get<ResidualOptions>(options).width;
  std::int64_t parameters = convolution(data.channels, from, 3);
  for (const std::int64_t to : {from, 2 * from, 4 * from}) {
    parameters += convolution(from, to, 3) + 5 * convolution(to, to, 3);
    if (from != to) parameters += convolution(from, to, 1);
    from = to;
  }
  return parameters + linear(from, data.outputs);
}

std::int64_t parameters_of_transformer(const ModelOptions& model, const DataShape& data) {
  const auto& [layers, heads, dim, hidden, dropout] = std::get<TransformerOptions>(model);
  const bool of_tokens = data.vocabulary > 0;
  const std::int64_t tokens = of_tokens ? data.width : data.height;
  const std::int64_t embedding =
      of_tokens ? data.vocabulary * dim : linear(data.channels * data.width, dim);
  const std::int64_t layer = 2 * (2 * dim) + linear(dim, 3 * dim) + linear(dim, dim) +
                             linear(dim, hidden) + linear(hidden, dim);
  return embedding + tokens * dim + layers * layer + 2 * dim + linear(dim, data.outputs);
}

constexpr std::array<ModelEntry, 8> kModels{
    {{.name = "mnist-cnn",
      .help = "PyTorch's classic MNIST network, for images of 1 x 28 x 28; libtorch",
      .in_libtorch = true,
      .images = "images of 1 x 28 x 28 in 10 classes",
      .takes_images =
          [](const DataShape& data) {
            return data.channels == 1 && data.height == 28 && data.width == 28 &&
                   data.outputs == 10;
          },
      .parameters = parameters_of_mnist_cnn},
     {.name = "mlp",
      .help = "a multi-layer perceptron; Eigen or libtorch",
      .in_eigen = true,
      .in_libtorch = true,
      .takes_real_targets = true,
      .parameters = parameters_of_perceptron,
      .read = read_perceptron},
     {.name = "softmax",
      .help = "softmax regression; Eigen or libtorch",
      .in_eigen = true,
      .in_libtorch = true,
      .parameters = parameters_of_softmax},
     {.name = "toy-net",
      .help = "four convolutions and two dense layers, 5.8 million parameters; libtorch",
      .in_libtorch = true,
      .images = "images of at least 16 x 16",
      .takes_images =
          [](const DataShape& data) {
            return after_toy_convolutions(std::min(data.height, data.width)) > 0;
          },
      .parameters = parameters_of_toy_net},
     {.name = "resnet20",
      .help = "the residual network of 20 layers for small images (He et al. 2016); libtorch",
      .in_libtorch = true,
      .parameters = parameters_of_residual,
      .read = read_residual},
     {.name = "transformer",
      .help = "a transformer encoder, over the rows of an image or the tokens of a text; libtorch",
      .in_libtorch = true,
      .takes_tokens = true,
      .parameters = parameters_of_transformer,
      .read = read_transformer},
     {.name = "quadratic",
      .help = "the noisy quadratic model (Zhang et al. 2019), which needs no data; Eigen",
      .in_eigen = true,
      .classifies = false,
      .parameters = [](const ModelOptions& options,
                       const DataShape&) { return std::get<QuadraticOptions>(options).dim; },
      .read = read_quadratic},
     {.name = "script:FILE",
      .help =
          "any model, as torch.jit.script() or torch.jit.trace() in Python exported it; libtorch",
      .in_libtorch = true}}};

}  // namespace

bool ModelEntry::takes(const DataShape& data) const {
  if (data.vocabulary > 0) return takes_tokens;
  if (data.real_targets) return takes_real_targets;
  return takes_images == nullptr || takes_images(data);
}

std::span<const ModelEntry> models() {
  return kModels;
}

ParsedModel parse_model(std::string_view text) {
  Spec spec(text);
  ParsedModel model{.entry = find_row("model", spec.name(), kModels)};
  if (model.entry.read != nullptr) model.options = model.entry.read(spec);
  spec.finish();
  return model;
}

}  // namespace rubato
