#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <rubato/steps/market.hpp>

namespace rubato {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Steps with as many cores, of as many samples.
struct StepKind {
  /// The fewest devices with which they are taken.
  std::int64_t devices = 0;
  std::int64_t samples = 0;
  std::int64_t cores = 0;
  double seconds = 0;
};

/// The least money and time in which samples can be trained from some time on, if nothing is ever
/// lost, moved or restarted, and devices join once at most.
///
/// If a sample is worth m, training at a time earns at most f(m), the largest m * rate - cost of a
/// second among the steps that the devices of that time allow. So s samples until the end cost at
/// least m * s - (the integral of f(m) until the end), whatever m is; several are tried.
class OptimumBound {
 public:
  /// The kinds have ascending numbers of devices. The end may be infinite.
  OptimumBound(std::span<const Market> markets, std::vector<StepKind> kinds, double end,
               const MarketModel& model);

  /// With devices that take part already. Infinite if so many samples cannot be trained until the
  /// end.
  [[nodiscard]] double money(double seconds, double samples) const;
  /// Without any: those that take the first step have joined before. This takes longer.
  [[nodiscard]] double money_without_devices(double seconds, double samples) const;
  /// The least money while devices join, at any time.
  [[nodiscard]] double entry_money() const { return entry_money_; }
  [[nodiscard]] double seconds(double samples) const { return samples / fastest_; }

 private:
  // Devices that begin to come at a time, or later but before the next entry, and the money for
  // those that are still there once they take part.
  struct Entry {
    double seconds = 0;
    double money = 0;
  };

  // A function of time that is constant between times_, and its integral from each of them on.
  struct Steps {
    std::vector<double> values{};
    std::vector<double> rest{};
  };

  // The best kind of step at a time by some measure; 0 if there is none, or none above it.
  template <class Measure>
  [[nodiscard]] double best(std::span<const Market> markets, double seconds,
                            const Measure& measure) const;
  template <class Measure>
  [[nodiscard]] Steps steps(std::span<const Market> markets, const Measure& measure) const;
  [[nodiscard]] double integral(const Steps& of, double seconds) const;
  void find_entries(std::span<const Market> markets, double until, const MarketModel& model);

  std::vector<StepKind> kinds_;
  double end_;
  double fastest_ = 0;
  // The times at which a market changes, until the end; empty if that is infinite.
  std::vector<double> times_;
  // The worths of a sample that are tried, and what each earns; the samples that can be trained.
  std::vector<double> worths_;
  std::vector<Steps> earned_;
  Steps samples_;
  // Empty if joining costs nothing.
  std::vector<Entry> entries_;
  double entry_seconds_ = 0;
  double entry_money_ = 0;
};

}  // namespace rubato
