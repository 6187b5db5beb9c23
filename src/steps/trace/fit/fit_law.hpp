#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "machine_lives.hpp"
#include "steps/trace/life_law.hpp"

namespace rubato {

/// The lives up to the deadline: those that reach it end there, and not by a preemption. Lives
/// shorter than a millisecond count as one, as laws may have no density at 0.
[[nodiscard]] std::vector<MachineLife> lives_until(double deadline,
                                                   std::span<const MachineLife> lives);

/// A law by maximum likelihood, with all its digits.
struct FittedLaw {
  LifeLaw law;
  double log_likelihood = 0;

  /// Akaike's criterion, 2 parameters - 2 log-likelihood: the least is the best.
  [[nodiscard]] double aic() const;
};

/// Fits a law to lives_until(deadline). Lives without preemption are censored on the right: a
/// preempted life counts by the law's density, another by the law's share of longer lives. A
/// bathtub needs a finite deadline. Throws Error if fewer than two lives were preempted.
[[nodiscard]] FittedLaw fit_law(LifeLawKind kind, double deadline,
                                std::span<const MachineLife> lives);

/// A point of a distribution: the share of machines that the provider has ended by this age.
struct EndedShare {
  double hours = 0;
  double share = 0;
};
/// The distribution of lives, some of them censored, by Kaplan and Meier's product limit
/// ("Nonparametric estimation from incomplete observations", JASA 53, 1958): a point for each age
/// at which machines were preempted.
[[nodiscard]] std::vector<EndedShare> ended_shares(std::span<const MachineLife> lives);

/// The distance of Kolmogorov and Smirnov between a law and lives_until() its deadline: the largest
/// difference between F and ended_shares().
[[nodiscard]] double distance(const LifeLaw& law, std::span<const MachineLife> lives);

struct LawTest {
  double distance = 0;
  /// The share of resamples, and of this test as one of them, with at least this distance: by
  /// chance alone, if the law is right, it is at most 0.05 once in twenty times.
  double p = 0;
};

/// Tests a law, fitted to some lives, by the distance() to others that it has not seen. Its
/// distribution comes from a parametric bootstrap, which includes that parameters are estimated: in
/// each resample, as many lives are drawn from the law, censored at times drawn from the product
/// limit of the censoring, and the law fitted to the first part is compared with the other. Calls
/// `on_resample` before each, with the number of those done.
[[nodiscard]] LawTest test_law(const LifeLaw& law, std::span<const MachineLife> fitted_to,
                               std::span<const MachineLife> unseen, std::int64_t resamples,
                               std::int64_t seed,
                               const std::function<void(std::int64_t)>& on_resample);

namespace detail {

/// fit_law() to lives that lives_until() has cut off. A bathtub is looked for near `known`, unless
/// that is null; the result of the other laws has no deadline.
[[nodiscard]] FittedLaw fit_law(LifeLawKind kind, double deadline,
                                std::span<const MachineLife> lives, const LifeLaw* known);

}  // namespace detail

}  // namespace rubato
