#include "life_law.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

#include "base/core/portable_math.hpp"

namespace rubato {

namespace {

constexpr RealRange kTimes{0.001, 1e6, true, true, "a number of hours from 0.001 to 1e6"};
constexpr RealRange kShapes{0.02, 50, true, true, "a number from 0.02 to 50"};

// The shares by the paper's parameters; rounded ones may add up to a little more than 1.
void set_shares(LifeLaw& law, const Spec& spec, double a, double b) {
  constexpr double kRounding = 0.001;
  law.early = a * (1 - exact::exp(-law.deadline / law.tau1));
  law.late = a * (exact::exp((law.deadline - b) / law.tau2) - exact::exp(-b / law.tau2));
  if (!(law.early + law.late <= 1 + kRounding)) {
    spec.reject("a", fmt::format("F(deadline) is {:.4g}; accepted: parameters by which it is at "
                                 "most 1",
                                 law.early + law.late));
  }
}

void refuse(const Spec& spec, std::initializer_list<std::string_view> keys, std::string_view law) {
  for (const std::string_view key : keys) {
    spec.refuse(key, fmt::format("it belongs to another law; accepted: with law={}", law));
  }
}

}  // namespace

LifeLaw LifeLaw::read(Spec& spec) {
  LifeLaw law{.kind = spec.choice("law", LifeLawKind::exponential, kLifeLaws)};
  const auto of_law = [&](std::string_view key, std::string_view meaning, double fallback,
                          const RealRange& range) {
    return spec.real(key, Unset{meaning}, range).value_or(fallback);
  };
  law.life = spec.real("life", law.life, kTimes);
  law.shape = of_law("shape", "1, with law=weibull", law.shape, kShapes);
  // Such as the machines of the paper had.
  const double a = of_law("a", "0.4, with law=bathtub", 0.4, kPositive);
  const double tau1 = of_law("tau1", "1, with law=bathtub", 1, kTimes);
  const double tau2 = of_law("tau2", "0.8, with law=bathtub", 0.8, kTimes);
  const double b = of_law("b", "24, with law=bathtub", 24, kAnyReal);
  const auto deadline = spec.real("deadline", Unset{"none, or 24 with law=bathtub"}, kTimes);
  if (law.kind != LifeLawKind::weibull) refuse(spec, {"shape"}, "weibull");
  if (law.kind != LifeLawKind::bathtub) {
    refuse(spec, {"a", "tau1", "tau2", "b"}, "bathtub");
    law.deadline = deadline.value_or(law.deadline);
    return law;
  }
  refuse(spec, {"life"}, "exponential or law=weibull");
  law.deadline = deadline.value_or(24);
  law.tau1 = tau1;
  law.tau2 = tau2;
  set_shares(law, spec, a, b);
  return law;
}

double LifeLaw::quantile(double share) const {
  switch (kind) {
    case LifeLawKind::exponential:
      return std::min(deadline, -life * exact::log1p(-share));
    case LifeLawKind::weibull:
      return std::min(deadline, life * exact::pow(-exact::log1p(-share), 1 / shape));
    case LifeLawKind::bathtub:
      break;
  }
  if (share < early) {
    const double reached = 1 - exact::exp(-deadline / tau1);
    return -tau1 * exact::log1p(-share / early * reached);
  }
  if (share >= early + late) return deadline;
  const double left = exact::exp(-deadline / tau2);
  const double reached = left + (share - early) / late * (1 - left);
  return std::max(0.0, deadline + tau2 * exact::log(reached));
}

}  // namespace rubato
