#pragma once

#include <compare>
#include <cstdint>

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

}  // namespace rubato
