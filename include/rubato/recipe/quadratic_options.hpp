#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rubato {

class Spec;

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

}  // namespace rubato
