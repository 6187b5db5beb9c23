// The bound is a Lagrangian dual: every worth of a sample gives a valid bound, and the largest of
// several counts. The worths that are tried are costs of a sample that occur in the markets, at
// most kMostWorths of them. For each, the constructor integrates what it earns from every change of
// a market until the end, so a query costs a binary search for each worth. Without an end there is
// nothing to integrate, and the bound is the least cost of a sample times the samples. Bounds until
// an end are lowered by 10^-9 of their size, so that rounding does not lift them above the true
// minimum.

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
                           const MarketModel& model)
    : kinds_(std::move(kinds)), end_(end) {
  // Devices may cost nothing after all.
  const bool is_free = model.billing == Billing::aws || model.billing == Billing::gcp;
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
  if (!is_free && model.join_spread == 0) {
    find_entries(markets, std::isfinite(end) ? end : known, model);
  }
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

// All devices of a place are taken, and those that came last leave first: so those that were
// offered all the time until the first of them take part have joined then, and have been paid for.
void OptimumBound::find_entries(std::span<const Market> markets, double until,
                                const MarketModel& model) {
  entry_seconds_ = model.provision_seconds + model.join_seconds;
  if (model.join_seconds == 0) return;
  entry_money_ = kNever;
  for (const Market& market : markets) {
    const std::vector<double> changes = changes_until({&market, 1}, until);
    std::vector<double> times = changes;
    for (const double change : changes) times.push_back(std::max(0.0, change - entry_seconds_));
    for (const double begin : times) {
      std::int64_t devices = market.offered(begin);
      double price = market.price_at(begin);
      for (auto at = market.next_offer(begin); at && *at <= begin + entry_seconds_;
           at = market.next_offer(*at)) {
        devices = std::min(devices, market.offered(*at));
        price = std::min(price, market.price_at(*at));
      }
      const auto more = std::ranges::upper_bound(kinds_, devices, {}, &StepKind::devices);
      if (more == kinds_.begin()) continue;
      const double money =
          static_cast<double>(std::prev(more)->cores) * price * model.join_seconds / kSecondsOfHour;
      entries_.push_back({.seconds = begin, .money = money});
      entry_money_ = std::min(entry_money_, money);
    }
  }
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

double OptimumBound::money_without_devices(double seconds, double samples) const {
  if (entries_.empty()) return money(seconds + entry_seconds_, samples);
  double least = kNever;
  for (const Entry& entry : entries_) {
    // An entry before that time stands for those between it and the next as well.
    const double begin = std::max(seconds, entry.seconds);
    least = std::min(least, entry.money + money(begin + entry_seconds_, samples));
  }
  return least;
}

}  // namespace rubato
