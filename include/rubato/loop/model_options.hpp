#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>

namespace rubato {

class Spec;       // base/spec.hpp
struct Strategy;  // base/spec.hpp

enum class InitializerKind {
  /// What the model's own constructor does.
  standard,
  /// Glorot and Bengio 2010.
  xavier,
  /// He et al. 2015 ("Kaiming").
  msra,
  /// Saxe et al. 2014.
  orthogonal,
  normal,
  uniform,
  one,
  zero,
};

inline constexpr std::array<Choice<InitializerKind>, 8> kInitializers{
    {{InitializerKind::standard, "default"},
     {InitializerKind::xavier, "xavier"},
     {InitializerKind::msra, "msra"},
     {InitializerKind::orthogonal, "orthogonal"},
     {InitializerKind::normal, "normal"},
     {InitializerKind::uniform, "uniform"},
     {InitializerKind::one, "one"},
     {InitializerKind::zero, "zero"}}};

/// Which side of a layer the variance of msra is kept on.
enum class FanMode { in, out };

/// The initial values of the weights: the parameters of at least two dimensions. Under all kinds
/// but the default, parameters called "bias" are 0, and other vectors (the scales of
/// normalisation) stay as they are.
struct InitializerOptions {
  InitializerKind kind = InitializerKind::standard;
  /// Of xavier and msra: a normal distribution instead of a uniform one.
  bool normal = false;
  /// Of xavier and orthogonal, above 0.
  double gain = 1;
  /// Of msra: the slope of the leaky ReLU that follows; 0 is a ReLU.
  double slope = 0;
  /// Of msra.
  FanMode fan = FanMode::in;
  /// Of normal.
  double mean = 0;
  double deviation = 0.01;
  /// Of uniform, low < high.
  double low = -0.07;
  double high = 0.07;

  friend bool operator==(const InitializerOptions&, const InitializerOptions&) = default;
};

/// The initializer that `spec` asks for (base/spec.hpp); initializers() has the arguments. Throws
/// Error for an unknown name, with the nearest, and for arguments that it does not take.
[[nodiscard]] InitializerOptions parse_initializer(std::string_view spec);
/// All of them.
[[nodiscard]] std::vector<Strategy> initializers();

/// What lies between two layers.
enum class Activation {
  relu,
  tanh,
};
inline constexpr std::array<Choice<Activation>, 2> kActivations{
    {{Activation::relu, "relu"}, {Activation::tanh, "tanh"}}};

/// A multi-layer perceptron.
struct PerceptronOptions {
  /// The widths of the hidden layers, from the inputs on: at least one, each at least 1.
  std::vector<std::int64_t> hidden{128, 64};
  Activation activation = Activation::relu;

  friend bool operator==(const PerceptronOptions&, const PerceptronOptions&) = default;
};

/// "mlp", or "mlp:hidden=256/128/64,activation=tanh". Throws Error.
[[nodiscard]] PerceptronOptions parse_perceptron(std::string_view text);
/// The arguments alone, whatever the name is, and without Spec::finish().
[[nodiscard]] PerceptronOptions read_perceptron(Spec& spec);

/// Weights and biases of fully connected layers from `inputs` over those widths to `outputs`.
[[nodiscard]] std::int64_t dense_parameters(std::int64_t inputs,
                                            std::span<const std::int64_t> hidden,
                                            std::int64_t outputs);

/// The noisy quadratic model (Zhang et al. 2019, "Which Algorithmic Choices Matter at Which Batch
/// Sizes? Insights From a Noisy Quadratic Model"): the loss of parameters w is
///
///     L(w) = 1/2 sum over i of h_i w_i^2
///
/// and the gradient of b samples is h_i w_i + xi_i, xi_i normal with mean 0 and variance
/// noise h_i / b: the covariance of the noise is a multiple of the Hessian. The eigenvalues follow
/// a power law, h_i = i^-p from h_1 = 1 to h_dim = 1 / condition. All w_i begin at 1; expected
/// losses are those of the paper's w ~ N(0, I), whose squares have that mean.
struct QuadraticOptions {
  /// Parameters, at least 1.
  std::int64_t dim = 10'000;
  /// h_1 / h_dim, at least 1; 1 where dim is 1. By default dim: the paper's h_i = 1 / i.
  std::optional<double> condition{};
  /// The variance of one sample's gradient by w_i is this times h_i; at least 0.
  double noise = 1;
  /// How many there are in an epoch, at least 1.
  std::int64_t samples = 10'000;
};

/// Throws Error for options out of their range.
void require_valid(const QuadraticOptions& options);

/// "quadratic", or "quadratic:dim=1000,condition=100,noise=0.5,samples=5000". Throws Error.
[[nodiscard]] QuadraticOptions parse_quadratic(std::string_view text);
/// The arguments alone, whatever the name is, and without Spec::finish().
[[nodiscard]] QuadraticOptions read_quadratic(Spec& spec);

/// A residual network for small images (He et al. 2016, section 4.2).
struct ResidualOptions {
  /// Channels of the first of its three groups of blocks, of at least 1: the second has twice as
  /// many, the third four times.
  std::int64_t width = 16;
};

/// "resnet20", or "resnet20:width=32". Throws Error.
[[nodiscard]] ResidualOptions parse_residual(std::string_view text);
/// The arguments alone, whatever the name is, and without Spec::finish().
[[nodiscard]] ResidualOptions read_residual(Spec& spec);

/// Weights of resnet20 for images of so many channels.
[[nodiscard]] std::int64_t residual_parameters(const ResidualOptions& options,
                                               std::int64_t channels, std::int64_t classes);

/// A transformer encoder (Vaswani et al. 2017), with the normalisation before each part.
struct TransformerOptions {
  /// Encoder layers, at least 1.
  std::int64_t layers = 2;
  /// Of the attention, at least 1.
  std::int64_t heads = 4;
  /// Features of a token: a multiple of the heads.
  std::int64_t dim = 64;
  /// Features between the two linear layers behind the attention, at least 1.
  std::int64_t hidden = 128;
  /// Share of the features that training leaves out behind the attention and behind the linear
  /// layers, from 0 to below 1.
  double dropout = 0;
};

/// "transformer", or "transformer:layers=4,heads=8,dim=128,hidden=512,dropout=0.1". Throws Error.
[[nodiscard]] TransformerOptions parse_transformer(std::string_view text);
/// The arguments alone, whatever the name is, and without Spec::finish().
[[nodiscard]] TransformerOptions read_transformer(Spec& spec);

/// Weights of the encoder for sequences of `tokens`, each of which comes in `inputs` numbers.
[[nodiscard]] std::int64_t transformer_parameters(const TransformerOptions& options,
                                                  std::int64_t tokens, std::int64_t inputs,
                                                  std::int64_t classes);
/// For sequences of `tokens` ids, from 0 to below `vocabulary`.
[[nodiscard]] std::int64_t sequence_transformer_parameters(const TransformerOptions& options,
                                                           std::int64_t tokens,
                                                           std::int64_t vocabulary,
                                                           std::int64_t classes);

}  // namespace rubato
