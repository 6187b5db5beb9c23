#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/loop/model_options.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/text/options_row.hpp"

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

namespace {

// Two layers of this width have 2^40 weights.
constexpr std::int64_t kWidest = std::int64_t{1} << 20;

}  // namespace

PerceptronOptions read_perceptron(Spec& spec) {
  PerceptronOptions options;
  options.hidden = spec.wholes("hidden", options.hidden, 1, kWidest);
  options.activation = spec.choice("activation", options.activation, kActivations);
  return options;
}

PerceptronOptions parse_perceptron(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "mlp") {
    throw Error(
        fmt::format("'{}' is not a perceptron; accepted: mlp, with arguments hidden and "
                    "activation",
                    spec.name()));
  }
  PerceptronOptions options = read_perceptron(spec);
  spec.finish();
  return options;
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
  throw Error(fmt::format("quadratic: {} {}; accepted: 1 to {}", name, value, max));
}

void require_real(std::string_view name, double value, const RealRange& range) {
  if (range.holds(value)) return;
  throw Error(
      fmt::format("quadratic: {} {}; accepted: {}", name, value, range.accepted_for(value)));
}

}  // namespace

void require_valid(const QuadraticOptions& options) {
  require_whole("dim", options.dim, kMostDimensions);
  require_whole("samples", options.samples, kMaxDatasetSize);
  require_real("noise", options.noise, kNotNegative);
  if (!options.condition) return;
  require_real("condition", *options.condition, kCondition);
  if (options.dim == 1 && *options.condition != 1) {
    throw Error(fmt::format("quadratic: condition {} in one dimension; accepted there: 1",
                            *options.condition));
  }
}

QuadraticOptions read_quadratic(Spec& spec) {
  QuadraticOptions options;
  options.dim = spec.whole("dim", options.dim, 1, kMostDimensions);
  options.condition = spec.real("condition", Unset{"dim"}, kCondition);
  options.noise = spec.real("noise", options.noise, kNotNegative);
  options.samples = spec.whole("samples", options.samples, 1, kMaxDatasetSize);
  require_valid(options);
  return options;
}

QuadraticOptions parse_quadratic(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "quadratic") {
    throw Error(
        fmt::format("'{}' is not a quadratic; accepted: quadratic, with arguments dim, "
                    "condition, noise and samples",
                    spec.name()));
  }
  const QuadraticOptions options = read_quadratic(spec);
  spec.finish();
  return options;
}

namespace {

constexpr std::int64_t kMostChannels = 4096;

// Counts a convolution without a bias, and its normalisation.
constexpr std::int64_t convolution(std::int64_t from, std::int64_t to, std::int64_t kernel) {
  return from * to * kernel * kernel + 2 * to;
}

}  // namespace

ResidualOptions read_residual(Spec& spec) {
  ResidualOptions options;
  options.width = spec.whole("width", options.width, 1, kMostChannels);
  return options;
}

ResidualOptions parse_residual(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "resnet20") {
    throw Error(
        fmt::format("'{}' is not a residual network; accepted: resnet20, with the argument width",
                    spec.name()));
  }
  const ResidualOptions options = read_residual(spec);
  spec.finish();
  return options;
}

std::int64_t residual_parameters(const ResidualOptions& options, std::int64_t channels,
                                 std::int64_t classes) {
  const std::array<std::int64_t, 3> widths{options.width, 2 * options.width, 4 * options.width};
  std::int64_t parameters = convolution(channels, options.width, 3);
  std::int64_t from = options.width;
  for (const std::int64_t to : widths) {
    parameters += convolution(from, to, 3) + 5 * convolution(to, to, 3);
    if (from != to) parameters += convolution(from, to, 1);
    from = to;
  }
  return parameters + (from + 1) * classes;
}

namespace {

constexpr std::int64_t kMostLayers = 1000;
constexpr std::int64_t kMostFeatures = std::int64_t{1} << 20;

constexpr std::int64_t linear(std::int64_t from, std::int64_t to) {
  return (from + 1) * to;
}

// Counts all parameters except those that make features of a token.
std::int64_t parameters_behind_embedding(const TransformerOptions& options, std::int64_t tokens,
                                         std::int64_t classes) {
  const std::int64_t dim = options.dim;
  const std::int64_t layer = 2 * (2 * dim) + linear(dim, 3 * dim) + linear(dim, dim) +
                             linear(dim, options.hidden) + linear(options.hidden, dim);
  return tokens * dim + options.layers * layer + 2 * dim + linear(dim, classes);
}

}  // namespace

TransformerOptions read_transformer(Spec& spec) {
  TransformerOptions options;
  options.layers = spec.whole("layers", options.layers, 1, kMostLayers);
  options.heads = spec.whole("heads", options.heads, 1, kMostFeatures);
  options.dim = spec.whole("dim", options.dim, 1, kMostFeatures);
  options.hidden = spec.whole("hidden", options.hidden, 1, kMostFeatures);
  options.dropout = spec.real("dropout", options.dropout, kBelowOne);
  if (options.dim % options.heads != 0) {
    spec.reject("heads",
                fmt::format("{} heads cannot share {} features; accepted: a divisor of dim",
                            options.heads, options.dim));
  }
  return options;
}

TransformerOptions parse_transformer(std::string_view text) {
  Spec spec(text);
  if (spec.name() != "transformer") {
    throw Error(fmt::format(
        "'{}' is not a transformer; accepted: transformer, with arguments layers, heads, "
        "dim, hidden and dropout",
        spec.name()));
  }
  const TransformerOptions options = read_transformer(spec);
  spec.finish();
  return options;
}

std::int64_t transformer_parameters(const TransformerOptions& options, std::int64_t tokens,
                                    std::int64_t inputs, std::int64_t classes) {
  return linear(inputs, options.dim) + parameters_behind_embedding(options, tokens, classes);
}

std::int64_t sequence_transformer_parameters(const TransformerOptions& options, std::int64_t tokens,
                                             std::int64_t vocabulary, std::int64_t classes) {
  return vocabulary * options.dim + parameters_behind_embedding(options, tokens, classes);
}

}  // namespace rubato
