#pragma once

#include <array>
#include <limits>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>

namespace rubato {

/// The laws of the lifetimes of machines.
enum class LifeLawKind {
  exponential,  ///< F(t) = 1 - exp(-t / life): a machine does not age
  weibull,      ///< F(t) = 1 - exp(-(t / life)^shape): with a shape below 1 the old ones are safer
  bathtub,      ///< F(t) = a (1 - exp(-t / tau1) + exp((t - b) / tau2)): risky when new and old
};
inline constexpr std::array<Choice<LifeLawKind>, 3> kLifeLaws{
    {{LifeLawKind::exponential, "exponential"},
     {LifeLawKind::weibull, "weibull"},
     {LifeLawKind::bathtub, "bathtub"}}};

/// The distribution F of the lifetimes of machines that a provider takes away. All times are hours.
///
/// The bathtub is that of Kadupitiya, Jadhao and Sharma, "Modeling the temporally constrained
/// preemptions of transient cloud VMs", HPDC 2020. Without the a exp(-b / tau2) that their F has at
/// 0 already, it is a mixture: a share `early` of the machines have exponential lifetimes of mean
/// tau1, for a share `late` the time that is left until the deadline is exponential with mean tau2,
/// both cut off at the deadline, and all others live until the deadline:
///
///     early = a (1 - exp(-deadline / tau1)),  late = a (exp((deadline - b) / tau2) - exp(-b /
///     tau2))
struct LifeLaw {
  LifeLawKind kind = LifeLawKind::exponential;
  /// The mean of the exponential law, the scale of Weibull's.
  double life = 4;
  double shape = 1;
  /// The parameters of the bathtub: shares from 0 to 1, at most 1 together, and means.
  double early = 0;
  double late = 0;
  double tau1 = 1;
  double tau2 = 1;
  /// The provider ends every machine that reaches this age; without end if there is none. The
  /// bathtub has one.
  double deadline = std::numeric_limits<double>::infinity();

  /// Reads the arguments `law`, `life`, `shape`, `a`, `tau1`, `tau2`, `b` and `deadline`. Throws
  /// Error if they contradict each other.
  [[nodiscard]] static LifeLaw read(Spec& spec);
  /// The lifetime that a share `share` of the machines, from 0 to below 1, do not reach. The bits
  /// are the same everywhere.
  [[nodiscard]] double quantile(double share) const;
};

}  // namespace rubato
