#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <rubato/steps/market_policy.hpp>
#include <rubato/steps/modelled_time.hpp>
#include <rubato/steps/step_plan.hpp>

namespace rubato {

/// A schedule of a training in markets whose future is known: whose devices it has, with the least
/// money by the deadline, or at all without one.
struct Optimum {
  /// Chooses by the schedule, for the same training; null if no schedule was found.
  std::shared_ptr<const MarketPolicy> policy{};
  /// At the end of the training; of several schedules with the least money, this is an early one.
  double seconds = std::numeric_limits<double>::infinity();
  double money = std::numeric_limits<double>::infinity();
  /// True if there is no cheaper schedule of these, apart from rounding (a part in 10^9 of the
  /// money); false if the search has reached its limit before it was sure.
  bool proven = false;
  /// No schedule costs less, whatever number of devices it takes; infinite if there is none.
  double least = 0;
  /// The states of the training that were looked at.
  std::int64_t states = 0;
};

/// The last of them proves, if it comes to an end.
inline constexpr std::int64_t kMostSearches = 4;

struct OptimumOptions {
  PlanOptions plan{};
  /// Policies whose schedules are searched, too, whenever these decide.
  std::vector<std::shared_ptr<const MarketPolicy>> policies{};
  /// The most states of each search. Half a million take about 100 MB.
  std::int64_t most_states = 500'000;
  /// Called now and then with the states so far, if it is not empty.
  std::function<void(std::int64_t states)> on_states{};
};

/// A source of the training, at its beginning, whose market policy is that one.
using MakeClock =
    std::function<std::unique_ptr<ClockedSource>(std::shared_ptr<const MarketPolicy> policy)>;

/// Searches all schedules that decide when the clock asks a market policy, when a loss is announced
/// and when the run fails, until the deadline; a decision is to wait, with or without devices, or
/// to train with devices of a place: all of them, those that stay after announced losses, or as
/// many as a power of two. docs/adr/0080-offline-optimum.md says how.
/// The steps must depend on nothing but the number of devices. Throws Error for a batch policy, and
/// without a deadline if the availability has no end (TraceEnd::cycle).
[[nodiscard]] Optimum find_optimum(const MakeClock& make, const OptimumOptions& options);

}  // namespace rubato
