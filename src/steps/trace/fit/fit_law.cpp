// Each law is fitted by maximum likelihood to lives that are censored on the right. The exponential
// law has a closed form. Weibull's shape is the root of a monotone function, found by bisection of
// its logarithm, and determines the scale. The four parameters of the bathtub are searched by the
// simplex method of Nelder and Mead (minimize.hpp) in coordinates without bounds, from nine starts
// or from a law that is known. Lives are in hours, and at least a millisecond long (lives_until()),
// so that their logarithms are finite.

#include "fit_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"
#include "minimize.hpp"

namespace rubato {

namespace {

using Lives = std::span<const MachineLife>;

double preempted_in(Lives lives) {
  return static_cast<double>(std::ranges::count_if(lives, &MachineLife::preempted));
}

// The mean is the time of all machines by the number of preempted ones.
FittedLaw fit_exponential(Lives lives) {
  const double preempted = preempted_in(lives);
  double hours = 0;
  for (const MachineLife& life : lives) hours += life.hours;
  const double mean = hours / preempted;
  return {.law = {.kind = LifeLawKind::exponential, .life = mean},
          .log_likelihood = -preempted * (1 + std::log(mean))};
}

// For a given shape, the scale has a formula, so the shape is the root of the derivative of the
// likelihood by it (Cohen, "Maximum likelihood estimation in the Weibull distribution based on
// complete and on censored samples", Technometrics 7, 1965):
//
//     sum t^k log t / sum t^k - 1 / k - (mean of log t of preempted lives) = 0,
//
// which ascends in k. Ages are divided by the longest, so that their powers are at most 1.
FittedLaw fit_weibull(Lives lives) {
  const double preempted = preempted_in(lives);
  const double longest = std::ranges::max(lives, {}, &MachineLife::hours).hours;
  std::vector<double> logs;
  double sum = 0;
  for (const MachineLife& life : lives) {
    logs.push_back(std::log(life.hours / longest));
    if (life.preempted) sum += logs.back();
  }
  double power = 0;
  const auto slope = [&](double shape) {
    power = 0;
    double weighted = 0;
    for (const double log : logs) {
      const double own = std::exp(shape * log);
      power += own;
      weighted += own * log;
    }
    return weighted / power - 1 / shape - sum / preempted;
  };
  double low = std::log(0.02);
  double high = std::log(50);
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (slope(std::exp(middle)) < 0 ? low : high) = middle;
  }
  const double shape = std::exp(low);
  static_cast<void>(slope(shape));
  const double scale = std::pow(power / preempted, 1 / shape);
  return {.law = {.kind = LifeLawKind::weibull, .life = scale * longest, .shape = shape},
          .log_likelihood =
              preempted * (std::log(shape) - shape * std::log(scale) - 1 - std::log(longest)) +
              (shape - 1) * sum};
}

// The bathtub by numbers without bounds: the logarithms of the shares relative to that of machines
// that live until the deadline, and of both means.
using Unbounded = std::array<double, 4>;

LifeLaw bathtub_of(const Unbounded& at, double deadline) {
  // Shares from about 1e-6 on, means from a minute to ten times the deadline: beyond that, they
  // cannot be told apart.
  constexpr double kLeastShare = -14;
  const double least = std::log(1.0 / 60);
  const double most = std::log(10 * deadline);
  const double early = std::exp(std::clamp(at[0], kLeastShare, -kLeastShare));
  const double late = std::exp(std::clamp(at[1], kLeastShare, -kLeastShare));
  return {.kind = LifeLawKind::bathtub,
          .early = early / (1 + early + late),
          .late = late / (1 + early + late),
          .tau1 = std::exp(std::clamp(at[2], least, std::max(least, most))),
          .tau2 = std::exp(std::clamp(at[3], least, std::max(least, most))),
          .deadline = deadline};
}

Unbounded unbounded_of(const LifeLaw& law) {
  constexpr double kNone = 1e-9;
  const double rest = std::max(kNone, 1 - law.early - law.late);
  return {std::log(std::max(kNone, law.early) / rest), std::log(std::max(kNone, law.late) / rest),
          std::log(law.tau1), std::log(law.tau2)};
}

double bathtub_log_likelihood(const LifeLaw& law, Lives lives) {
  constexpr double kLeast = std::numeric_limits<double>::min();
  const double left = std::exp(-law.deadline / law.tau2);
  const double early = law.early / -std::expm1(-law.deadline / law.tau1);
  const double late = law.late / (1 - left);
  double sum = 0;
  for (const MachineLife& life : lives) {
    const double young = std::exp(-life.hours / law.tau1);
    const double old = std::exp((life.hours - law.deadline) / law.tau2);
    const double likelihood = life.preempted ? early * young / law.tau1 + late * old / law.tau2
                                             : 1 - early * (1 - young) - late * (old - left);
    sum += std::log(std::max(kLeast, likelihood));
  }
  return sum;
}

// The likelihood may have several maxima: several starts are tried, unless one is known.
FittedLaw fit_bathtub(double deadline, Lives lives, const LifeLaw* known) {
  const auto value = [&](const Unbounded& at) {
    return -bathtub_log_likelihood(bathtub_of(at, deadline), lives);
  };
  std::vector<Unbounded> starts;
  if (known != nullptr) {
    starts.push_back(unbounded_of(*known));
  } else {
    for (const double early : {0.02, 0.1, 0.5}) {
      for (const double late : {0.05, 0.3, 1.0}) {
        starts.push_back({-0.5, -1, std::log(early * deadline), std::log(late * deadline)});
      }
    }
  }
  Unbounded best{};
  double least = std::numeric_limits<double>::infinity();
  for (const Unbounded& start : starts) {
    const Unbounded found = detail::minimize(value, start, 0.5);
    if (const double at = value(found); at < least) {
      least = at;
      best = found;
    }
  }
  return {.law = bathtub_of(best, deadline), .log_likelihood = -least};
}

}  // namespace

std::vector<MachineLife> lives_until(double deadline, Lives lives) {
  constexpr double kMillisecond = 0.001 / kSecondsOfHour;
  std::vector<MachineLife> until(lives.begin(), lives.end());
  for (MachineLife& life : until) {
    life.preempted = life.preempted && life.hours < deadline;
    life.hours = std::clamp(life.hours, kMillisecond, deadline);
  }
  return until;
}

double FittedLaw::aic() const {
  constexpr std::array<double, kLifeLaws.size()> kParameters{1, 2, 4};
  return 2 * kParameters.at(static_cast<std::size_t>(law.kind)) - 2 * log_likelihood;
}

FittedLaw detail::fit_law(LifeLawKind kind, double deadline, Lives lives, const LifeLaw* known) {
  switch (kind) {
    case LifeLawKind::exponential:
      return fit_exponential(lives);
    case LifeLawKind::weibull:
      return fit_weibull(lives);
    case LifeLawKind::bathtub:
      break;
  }
  return fit_bathtub(deadline, lives, known);
}

FittedLaw fit_law(LifeLawKind kind, double deadline, Lives lives) {
  const std::vector<MachineLife> until = lives_until(deadline, lives);
  if (const double preempted = preempted_in(until); preempted < 2) {
    throw_error("{} preempted lives below the deadline; accepted: at least 2", preempted);
  }
  FittedLaw fitted = detail::fit_law(kind, deadline, until, nullptr);
  fitted.law.deadline = deadline;
  return fitted;
}

}  // namespace rubato
