#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>

namespace rubato {

struct Strategy;  // base/spec.hpp

enum class InitializerKind {
  /// The initial values that the model's constructor sets.
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

/// The side of a layer on which msra preserves the variance.
enum class FanMode { in, out };

/// The initial values of the weights, which are the parameters of at least two dimensions. Under
/// all kinds but the default, parameters called "bias" are set to 0, and other vectors (the scales
/// of normalisation) keep their values.
struct InitializerOptions {
  InitializerKind kind = InitializerKind::standard;
  /// Draws from a normal distribution instead of a uniform one (xavier and msra).
  bool normal = false;
  /// A factor of the standard deviation, above 0 (xavier and orthogonal).
  double gain = 1;
  /// The slope of the leaky ReLU that follows (msra); 0 is a ReLU.
  double slope = 0;
  /// The side on which the variance is preserved (msra).
  FanMode fan = FanMode::in;
  /// The parameters of the distribution (normal).
  double mean = 0;
  double deviation = 0.01;
  /// The bounds of the distribution, low < high (uniform).
  double low = -0.07;
  double high = 0.07;

  friend bool operator==(const InitializerOptions&, const InitializerOptions&) = default;
};

/// Returns the initializer that `spec` asks for (base/spec.hpp); initializers() lists the
/// arguments. Throws Error for an unknown name, suggesting the nearest, and for arguments that the
/// initializer does not take.
[[nodiscard]] InitializerOptions parse_initializer(std::string_view spec);
/// All initializers, with their arguments.
[[nodiscard]] std::vector<Strategy> initializers();

/// The function between two layers.
enum class Activation {
  relu,
  tanh,
};
inline constexpr std::array<Choice<Activation>, 2> kActivations{
    {{Activation::relu, "relu"}, {Activation::tanh, "tanh"}}};

/// A multi-layer perceptron.
struct PerceptronOptions {
  /// The widths of the hidden layers, beginning next to the inputs: at least one, each at least 1.
  std::vector<std::int64_t> hidden{128, 64};
  Activation activation = Activation::relu;

  friend bool operator==(const PerceptronOptions&, const PerceptronOptions&) = default;
};

/// Counts the weights and biases of fully connected layers from `inputs` through those widths to
/// `outputs`.
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
  /// The number of parameters, at least 1.
  std::int64_t dim = 10'000;
  /// h_1 / h_dim, at least 1; 1 if dim is 1. By default dim: the paper's h_i = 1 / i.
  std::optional<double> condition{};
  /// The variance of one sample's gradient by w_i is this times h_i; at least 0.
  double noise = 1;
  /// The number of samples in an epoch, at least 1.
  std::int64_t samples = 10'000;
};

/// Throws Error for options out of range.
void require_valid(const QuadraticOptions& options);

/// A residual network for small images (He et al. 2016, section 4.2).
struct ResidualOptions {
  /// The channels of the first of its three groups of blocks, at least 1: the second has twice as
  /// many, the third four times.
  std::int64_t width = 16;
};

/// A transformer encoder (Vaswani et al. 2017), with the normalisation before each part.
struct TransformerOptions {
  /// Encoder layers, at least 1.
  std::int64_t layers = 2;
  /// Attention heads, at least 1.
  std::int64_t heads = 4;
  /// Features of a token: a multiple of `heads`.
  std::int64_t dim = 64;
  /// Features between the two linear layers after the attention, at least 1.
  std::int64_t hidden = 128;
  /// The share of features that training drops after the attention and after the linear layers,
  /// from 0 to below 1.
  double dropout = 0;
};

}  // namespace rubato
