#include "optimum_bound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/core/seconds.hpp"

namespace rubato {

namespace {

constexpr std::size_t kMostWorths = 12;

// The times from 0 on at which a market changes, before `end`.
std::vector<double> changes_until(std::span<const Market> markets, double end) {
  std::vector<double> times;
  for (const Market& market : markets) {
    for (std::optional<double> at = 0; at && *at < end; at = market.next_offer(*at)) {
      times.push_back(*at);
    }
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

// Some of the values, with the least and the largest.
std::vector<double> some_of(std::vector<double> values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() <= kMostWorths) return values;
  std::vector<double> some;
  for (std::size_t i = 0; i < kMostWorths; ++i) {
    some.push_back(values[i * (values.size() - 1) / (kMostWorths - 1)]);
  }
  return some;
}

}  // namespace

template <class Measure>
double OptimumBound::best(std::span<const Market> markets, double seconds,
                          const Measure& measure) const {
  double best = 0;
  for (const Market& market : markets) {
    const std::int64_t devices = market.offered(seconds);
    const double price = market.price_at(seconds);
    for (const StepKind& kind : kinds_) {
      if (kind.devices <= devices) best = std::max(best, measure(kind, price));
    }
  }
  return best;
}

template <class Measure>
OptimumBound::Steps OptimumBound::steps(std::span<const Market> markets,
                                        const Measure& measure) const {
  Steps steps{.values = std::vector<double>(times_.size()),
              .rest = std::vector<double>(times_.size() + 1)};
  for (std::size_t i = times_.size(); i-- > 0;) {
    steps.values[i] = best(markets, times_[i], measure);
    const double until = i + 1 < times_.size() ? times_[i + 1] : end_;
    steps.rest[i] = steps.rest[i + 1] + (until - times_[i]) * steps.values[i];
  }
  return steps;
}

OptimumBound::OptimumBound(std::span<const Market> markets, std::vector<StepKind> kinds, double end,
                           bool is_free)
    : kinds_(std::move(kinds)), end_(end) {
  const auto rate = [](const StepKind& kind) {
    return kind.seconds > 0 ? static_cast<double>(kind.samples) / kind.seconds : kNever;
  };
  const auto cost = [is_free](const StepKind& kind, double price) {
    return is_free ? 0 : static_cast<double>(kind.cores) * price / kSecondsOfHour;
  };
  for (const StepKind& kind : kinds_) fastest_ = std::max(fastest_, rate(kind));
  // Steps that take no time cost nothing.
  if (!std::isfinite(fastest_)) return;
  double known = 0;
  for (const Market& market : markets) known = std::max(known, market.availability().length());
  std::vector<double> costs;
  for (const double at : changes_until(markets, std::min(known, end))) {
    for (const Market& market : markets) {
      for (const StepKind& kind : kinds_) {
        costs.push_back(cost(kind, market.price_at(at)) / rate(kind));
      }
    }
    costs = some_of(std::move(costs));
  }
  worths_ = std::move(costs);
  if (!std::isfinite(end)) {
    worths_.resize(std::min<std::size_t>(worths_.size(), 1));
    return;
  }
  times_ = changes_until(markets, end);
  for (const double worth : worths_) {
    earned_.push_back(steps(markets, [&](const StepKind& kind, double price) {
      return worth * rate(kind) - cost(kind, price);
    }));
  }
  samples_ = steps(markets, [&](const StepKind& kind, double) { return rate(kind); });
}

double OptimumBound::integral(const Steps& of, double seconds) const {
  const auto after = std::ranges::upper_bound(times_, seconds) - times_.begin();
  const auto next = static_cast<std::size_t>(after);
  const double until = next < times_.size() ? times_[next] : end_;
  return of.rest[next] + std::max(0.0, until - seconds) * of.values[next - 1];
}

double OptimumBound::money(double seconds, double samples) const {
  if (samples <= 0 || worths_.empty()) return 0;
  if (times_.empty()) return worths_.front() * samples;
  constexpr double kPart = 1e-9;
  if (integral(samples_, seconds) < samples * (1 - kPart)) return kNever;
  double money = 0;
  for (std::size_t i = 0; i < worths_.size(); ++i) {
    money = std::max(money, worths_[i] * samples - integral(earned_[i], seconds));
  }
  return money * (1 - kPart);
}

}  // namespace rubato
