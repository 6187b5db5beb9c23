#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/spec.hpp>

namespace rubato {

/// The knowledge of a market policy when it decides where to train: nothing of the future.
struct MarketView {
  /// A zone's spot market, in the order of the zones, or the on-demand devices after them, which
  /// are to be had in the zone where training was last.
  struct Place {
    bool on_demand = false;
    /// Devices of whole machines that it offers now, and the price of one for an hour.
    std::int64_t devices = 0;
    double price = 0;
    /// Seconds until the end of training, if it goes on there from now on without losses; infinite
    /// if these devices are too few for a step. Of these, the seconds until it begins there.
    double rest_seconds = std::numeric_limits<double>::infinity();
    double enter_seconds = 0;
    /// The mean time between two losses of devices there so far.
    double mean_stay = std::numeric_limits<double>::infinity();
    /// If the state is in another zone: the seconds of enter_seconds in which it is moved and
    /// training restarts, and the money for that. 0 otherwise.
    double move_seconds = 0;
    double move_money = 0;
  };

  /// The time now, and the one at which training should have ended; infinite without one.
  double seconds = 0;
  double deadline = std::numeric_limits<double>::infinity();
  /// The share of the samples that have been trained.
  double share = 0;
  /// An upper bound of the time until the next decision, and of what on-demand devices would have
  /// to repeat if a loss came before it.
  double slack = 0;
  std::vector<Place> places{};
  /// The place whose devices training has; empty if it waits without any.
  std::optional<std::size_t> here{};
};

struct MarketChoice {
  /// The place to train at; empty to wait without devices, which costs nothing.
  std::optional<std::size_t> place{};
  /// The most devices of it to train with; empty for all.
  std::optional<std::int64_t> most{};
  /// The time at which a training that waits decides again, if nothing changes before.
  double again = std::numeric_limits<double>::infinity();
};

/// Decides whose devices a training has: those of a zone's spot market, which may leave, or
/// on-demand ones, which stay and cost more. It is asked when a step begins, and while nothing
/// trains, whenever a market changes. It must depend on nothing but the view.
class MarketPolicy {
 public:
  MarketPolicy() = default;
  MarketPolicy(const MarketPolicy&) = delete;
  MarketPolicy& operator=(const MarketPolicy&) = delete;
  virtual ~MarketPolicy() = default;

  [[nodiscard]] virtual MarketChoice choose(const MarketView& view) const = 0;
  /// True if it goes nowhere without on-demand devices, and if it needs a deadline.
  [[nodiscard]] virtual bool needs_on_demand() const { return true; }
  [[nodiscard]] virtual bool needs_deadline() const { return true; }
};

/// The policy of several zones for which none is chosen.
inline constexpr std::string_view kPolicyOfZones = "spot";

/// A policy by its text, "uniform" or "late:few=8,from=0.5". Throws Error.
[[nodiscard]] std::shared_ptr<const MarketPolicy> make_market_policy(std::string_view text);
/// The policies with their arguments.
[[nodiscard]] std::vector<Strategy> market_policies();

}  // namespace rubato
