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
/// lost, moved, restarted or joined.
///
/// If a sample is worth m, training at a time earns at most f(m), the largest m * rate - cost of a
/// second among the steps that the devices of that time allow. So s samples until the end cost at
/// least m * s - (the integral of f(m) until the end), whatever m is; several are tried.
class OptimumBound {
 public:
  /// The end may be infinite. If `is_free`, devices may cost nothing after all (Billing::aws).
  OptimumBound(std::span<const Market> markets, std::vector<StepKind> kinds, double end,
               bool is_free);

  /// Infinite if so many samples cannot be trained until the end.
  [[nodiscard]] double money(double seconds, double samples) const;
  [[nodiscard]] double seconds(double samples) const { return samples / fastest_; }

 private:
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

  std::vector<StepKind> kinds_;
  double end_;
  double fastest_ = 0;
  // The times at which a market changes, until the end; empty if that is infinite.
  std::vector<double> times_;
  // The worths of a sample that are tried, and what each earns; the samples that can be trained.
  std::vector<double> worths_;
  std::vector<Steps> earned_;
  Steps samples_;
};

}  // namespace rubato
