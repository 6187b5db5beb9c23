#include <algorithm>
#include <cmath>
#include <limits>

#include "fit_law.hpp"
#include "steps/trace/generator_parts.hpp"

namespace rubato {

namespace {

using Lives = std::span<const MachineLife>;

// distance() to lives that are cut off at the deadline already.
double distance_until_deadline(const LifeLaw& law, Lives lives) {
  double largest = 0;
  double before = 0;
  for (const EndedShare& point : ended_shares(lives)) {
    const double share = law.ended_by(point.hours);
    largest = std::max({largest, std::abs(share - before), std::abs(share - point.share)});
    before = point.share;
  }
  // F goes on where no more machines are preempted, as far as there are any.
  const double last = std::ranges::max(lives, {}, &MachineLife::hours).hours;
  return std::max(largest, std::abs(law.ended_by(last) - before));
}

// Draws lives from a law that are censored as some lives are.
class Resampling {
 public:
  Resampling(const LifeLaw& law, Lives fitted_to, Lives unseen, std::int64_t seed)
      : law_(law), draws_(seed, kStream) {
    for (const Lives lives : {fitted_to, unseen}) {
      for (MachineLife life : lives_until(law.deadline, lives)) {
        // Where a life is censored at the deadline makes no difference: all end there.
        life.preempted = !life.preempted;
        censorings_.push_back(life);
      }
    }
    censored_ = ended_shares(censorings_);
  }

  std::vector<MachineLife> drawn(std::size_t count) {
    std::vector<MachineLife> lives;
    for (std::size_t i = 0; i < count; ++i) {
      const double age = law_.quantile(draws_.share());
      const double censored = censoring(draws_.share());
      lives.push_back({.hours = std::min(age, censored), .preempted = age <= censored});
    }
    return lives_until(law_.deadline, lives);
  }

 private:
  static constexpr std::int64_t kStream = 6;

  [[nodiscard]] double censoring(double share) const {
    const auto at = std::ranges::upper_bound(censored_, share, {}, &EndedShare::share);
    return at == censored_.end() ? std::numeric_limits<double>::infinity() : at->hours;
  }

  const LifeLaw& law_;
  detail::Draws draws_;
  std::vector<MachineLife> censorings_;
  std::vector<EndedShare> censored_;
};

bool can_be_fitted(Lives lives) {
  return std::ranges::count_if(lives, &MachineLife::preempted) >= 2;
}

}  // namespace

std::vector<EndedShare> ended_shares(Lives lives) {
  std::vector<MachineLife> sorted(lives.begin(), lives.end());
  // A life that is censored when others are preempted was at risk.
  std::ranges::sort(sorted, {},
                    [](const MachineLife& life) { return std::pair(life.hours, !life.preempted); });
  std::vector<EndedShare> points;
  double living = 1;
  auto at_risk = static_cast<double>(sorted.size());
  for (const MachineLife& life : sorted) {
    if (life.preempted) {
      living *= (at_risk - 1) / at_risk;
      if (!points.empty() && points.back().hours == life.hours) points.pop_back();
      points.push_back({.hours = life.hours, .share = 1 - living});
    }
    --at_risk;
  }
  return points;
}

double distance(const LifeLaw& law, Lives lives) {
  return distance_until_deadline(law, lives_until(law.deadline, lives));
}

LawTest test_law(const LifeLaw& law, Lives fitted_to, Lives unseen, std::int64_t resamples,
                 std::int64_t seed, const std::function<void(std::int64_t)>& on_resample) {
  LawTest test{.distance = distance(law, unseen)};
  Resampling resampling(law, fitted_to, unseen, seed);
  std::int64_t larger = 1;
  for (std::int64_t i = 0; i < resamples; ++i) {
    on_resample(i);
    std::vector<MachineLife> first = resampling.drawn(fitted_to.size());
    // The law could not have been fitted to such a sample.
    while (!can_be_fitted(first)) first = resampling.drawn(fitted_to.size());
    const std::vector<MachineLife> second = resampling.drawn(unseen.size());
    LifeLaw fitted = detail::fit_law(law.kind, law.deadline, first, &law).law;
    fitted.deadline = law.deadline;
    if (distance_until_deadline(fitted, second) >= test.distance) ++larger;
  }
  test.p = static_cast<double>(larger) / static_cast<double>(resamples + 1);
  return test;
}

}  // namespace rubato
