#pragma once

#include <compare>
#include <cstdint>

#include <rubato/base/parse.hpp>

namespace rubato {

/// What the time of a step depends on in the model.
struct StepShape {
  /// That have a minibatch; at least 1.
  std::int64_t cores = 1;
  /// Of the core that has most of them; at least 1.
  std::int64_t minibatches = 1;

  friend auto operator<=>(const StepShape&, const StepShape&) = default;

  /// Of so many minibatches that `cores` share out evenly.
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
/// gamma is 1 where the two follow one another, and large where they overlap. The sum of
/// minibatches on a core counts as samples do in the paper, as minibatches are all of one size.
struct ThroughputModel {
  /// In seconds, at least 0; gradient_slope above 0.
  double gradient_base = 0;
  double gradient_slope = 0;
  double host_base = 0;
  double host_slope = 0;
  double network_base = 0;
  double network_slope = 0;
  /// From 1 to 10.
  double gamma = 1;

  friend bool operator==(const ThroughputModel&, const ThroughputModel&) = default;

  /// Where a host has `cores_per_host` cores, and cores fill one host after the other.
  [[nodiscard]] double seconds(const StepShape& shape, std::int64_t cores_per_host) const;

  /// All of them, in that order.
  void visit_state(NumberVisitor& numbers);
};

}  // namespace rubato
