#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include <rubato/base/parse.hpp>

namespace rubato {

/// The properties of a step on which its time depends in the model.
struct StepShape {
  /// Cores that have a minibatch; at least 1.
  std::int64_t cores = 1;
  /// Minibatches of the core that has most; at least 1.
  std::int64_t minibatches = 1;

  friend auto operator<=>(const StepShape&, const StepShape&) = default;

  /// The shape of a step of `minibatches` minibatches that `cores` cores divide evenly.
  [[nodiscard]] static StepShape of(std::int64_t minibatches, std::int64_t cores);
};

/// The seconds of a step (Qiao et al. 2021, "Pollux: co-adaptive cluster scheduling for
/// goodput-optimized deep learning", OSDI, equations 8 to 11), of s minibatches on the busiest of K
/// cores:
///
///     T      = (T_grad^gamma + T_sync^gamma)^(1 / gamma)
///     T_grad = gradient_base + gradient_slope s
///     T_sync = 0                                   for one core,
///              host_base + host_slope (K - 2)      for cores of one host,
///              network_base + network_slope (K - 2)  for cores of several
///
/// gamma is 1 if the two follow one another, and large if they overlap. The number of minibatches
/// on a core replaces the paper's number of samples, because minibatches all have one size.
struct ThroughputModel {
  /// All are in seconds and at least 0; gradient_slope is above 0.
  double gradient_base = 0;
  double gradient_slope = 0;
  double host_base = 0;
  double host_slope = 0;
  double network_base = 0;
  double network_slope = 0;
  /// At least 1, at most 10.
  double gamma = 1;

  friend bool operator==(const ThroughputModel&, const ThroughputModel&) = default;

  /// The seconds of a step if a host has `cores_per_host` cores, and cores fill one host after the
  /// other.
  [[nodiscard]] double seconds(const StepShape& shape, std::int64_t cores_per_host) const;

  /// Visits all of them, in order of declaration.
  void visit_state(NumberVisitor& numbers);
};

/// Mean seconds of the steps of each shape, each above 0.
using StepSeconds = std::map<StepShape, double>;

/// The model whose logarithms of seconds have the smallest sum of squared distances to those of
/// `observed`, which must not be empty (Qiao et al. 2021, section 4.1), by the method of Levenberg
/// and Marquardt.
///
/// Unexplored configurations cost nothing, so that exploring them looks good: as in Pollux, the
/// terms of cores of one host, and of several, are 0 until there have been such steps. A slope is 0
/// until there have been two numbers of cores, or of minibatches, to distinguish it from its base.
/// A time that could belong to the gradient or to the sum belongs to the gradient.
///
/// A pure function: the same bits on any number of threads.
[[nodiscard]] ThroughputModel fit_throughput(const StepSeconds& observed,
                                             std::int64_t cores_per_host);

/// The root of the mean squared difference of logarithms: 0.1 is ten percent.
[[nodiscard]] double fit_error(const ThroughputModel& model, const StepSeconds& observed,
                               std::int64_t cores_per_host);

}  // namespace rubato
