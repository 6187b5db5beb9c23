#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/steps/availability.hpp>

namespace rubato {

/// The work that is lost with a device that leaves in the middle of a step.
enum class Loses {
  step,        ///< the step under way: the others have the state before it
  checkpoint,  ///< everything since the last checkpoint, from which all begin again
};
inline constexpr std::array<Choice<Loses>, 2> kLoses{
    {{Loses::step, "step"}, {Loses::checkpoint, "checkpoint"}}};

/// The devices that are paid for, and those that are not after all (docs/cluster.md has the
/// sources of both providers' rules).
enum class Billing {
  steps,    ///< those that a step has, while it has them, and those that join
  seconds,  ///< all that there are, from their provisioning to their end, by the second
  aws,      ///< like seconds, but nothing for one that the provider ends in its first hour
  gcp,      ///< like seconds, but nothing for one that the provider ends in its first minute
};
inline constexpr std::array<Choice<Billing>, 4> kBillings{{{Billing::steps, "steps"},
                                                           {Billing::seconds, "seconds"},
                                                           {Billing::aws, "aws"},
                                                           {Billing::gcp, "gcp"}}};

/// A move of the training's state from one zone to another, besides the provisioning and joining of
/// devices there and a restart.
struct MoveModel {
  /// Seconds of a move, however small the state, at least 0; and bytes per second, above 0.
  double latency_seconds = 0;
  double bandwidth = 1e9;
  /// Bytes of the state; empty if they are those of a gradient (ClusterModel::gradient_bytes).
  std::optional<std::int64_t> state_bytes{};
  /// The price of 10^9 bytes that leave a zone.
  double egress_price = 0;

  friend bool operator==(const MoveModel&, const MoveModel&) = default;
};

/// A market, apart from its number of devices. It matters with an availability alone.
struct MarketModel {
  /// Devices of a machine, at least 1. They come and go by whole machines: a number of devices is
  /// rounded down to a multiple.
  std::int64_t machine = 1;
  /// Seconds from the offer of a machine until it runs, and is paid for, and from then until its
  /// devices take part; at least 0.
  double provision_seconds = 0;
  double join_seconds = 0;
  /// With a spread above 0, each machine's time to join is drawn from a log-normal distribution
  /// with the median join_seconds, whose logarithm has this standard deviation, by this seed.
  double join_spread = 0;
  std::uint64_t join_seed = 1;
  /// Seconds by which a loss is announced; at least 0.
  double notice_seconds = 0;
  Loses loses = Loses::step;
  Billing billing = Billing::steps;
  /// The mean time between failures of the whole run, in which no device is lost: at random times
  /// by this seed, as many in each second; 0 for none.
  double mtbf_seconds = 0;
  std::uint64_t mtbf_seed = 1;
  /// The mean time between notices that no loss follows, likewise; 0 for none. They need a notice
  /// of more than 0 seconds.
  double false_notice_seconds = 0;
  std::uint64_t false_notice_seed = 1;
  /// Devices that may be had on demand at any time, 0 for none, and the price of one for an hour.
  std::int64_t on_demand_devices = 0;
  double on_demand_price = 0;
  /// A move between zones; it matters with several alone.
  MoveModel move{};

  friend bool operator==(const MarketModel&, const MarketModel&) = default;
};

/// The price of a device for an hour, in any currency.
struct DevicePrice {
  /// At least 0; not used with `of_trace`.
  double constant = 0;
  /// True if it is that of the availability (Availability::price_at()).
  bool of_trace = false;

  [[nodiscard]] bool costs() const { return of_trace || constant > 0; }
  friend bool operator==(const DevicePrice&, const DevicePrice&) = default;
};
/// "0.9" or "trace". Throws Error.
[[nodiscard]] DevicePrice parse_price(std::string_view text);

/// Devices that came together and are still there.
struct FleetGroup {
  std::int64_t devices = 0;
  /// The times at which they have been provisioned, and at which they have joined.
  double paid_from = 0;
  double joins = 0;

  friend bool operator==(const FleetGroup&, const FleetGroup&) = default;
};

/// The devices that a training has of a market at some time: those that came first are the first,
/// and those that came last leave first. Market::settle() makes and changes it.
struct Fleet {
  std::vector<FleetGroup> groups{};
  /// Machines that have come so far, by which their times to join are drawn.
  std::uint64_t machines = 0;
  /// The time at which training came to this market, and the one up to which its changes have been
  /// applied; negative for none.
  double since = 0;
  double settled = -1;

  /// Devices that take part at a time, that are paid for and do not yet, and that are on their way.
  [[nodiscard]] std::int64_t joined(double seconds) const;
  [[nodiscard]] std::int64_t joining(double seconds) const;
  [[nodiscard]] std::int64_t coming(double seconds) const;

  friend bool operator==(const Fleet&, const Fleet&) = default;
};

/// An availability as a training has it: whole machines that take part some time after they have
/// been offered, at a price. All that are offered are taken. Requires times as Availability::at()
/// does.
class Market {
 public:
  /// Throws Error for a price of a trace that has none.
  Market(Availability availability, MarketModel model, DevicePrice price);

  /// Applies the changes after Fleet::settled up to and including `seconds`. Returns the money that
  /// the provider does not ask for after all (Billing::aws, Billing::gcp).
  double settle(Fleet& fleet, double seconds) const;
  /// The devices of whole machines that are offered at a time.
  [[nodiscard]] std::int64_t offered(double seconds) const;
  /// The next time after `seconds`, to which the fleet is settled, at which devices, their part or
  /// their price may change; empty if nothing changes any more.
  [[nodiscard]] std::optional<double> next_event(const Fleet& fleet, double seconds) const;
  /// The first failure after `seconds`; infinite without failures.
  [[nodiscard]] double next_failure(double seconds) const { return failures_.after(seconds); }
  /// The first notice after `seconds` that no loss follows, at a whole second; infinite without.
  [[nodiscard]] double next_false_notice(double seconds) const {
    return false_notices_.after(seconds);
  }
  /// The next time after `seconds` at which the devices that are offered or their price change.
  [[nodiscard]] std::optional<double> next_offer(double seconds) const;
  /// The mean time between two losses of devices from the beginning until `seconds`; infinite if
  /// there was none.
  [[nodiscard]] double mean_stay(double seconds) const;
  /// The price of a device for an hour at a time; 0 where the availability has ended.
  [[nodiscard]] double price_at(double seconds) const;

  [[nodiscard]] const Availability& availability() const { return availability_; }
  /// True if devices take part as soon as they are offered, and cost a constant price while steps
  /// have them.
  [[nodiscard]] bool is_plain() const;

 private:
  void grow(Fleet& fleet, std::int64_t devices, double seconds) const;
  [[nodiscard]] double shrink(Fleet& fleet, std::int64_t devices, double seconds) const;
  // The time to join of a machine, by its number.
  [[nodiscard]] double join_seconds(std::uint64_t machine) const;
  // The cost of a device for a while.
  [[nodiscard]] double cost(double begin, double end) const;

  Availability availability_;
  MarketModel model_;
  DevicePrice price_;
  // Times that a seed draws, as many in each second on average.
  struct RandomTimes {
    double mean = 0;
    std::uint64_t seed = 0;
    std::int64_t stream = 0;
    // They are whole numbers of this part of a second.
    double per_second = 1;
    // The times that have been asked for, in order.
    mutable std::vector<double> times{};

    [[nodiscard]] double after(double seconds) const;
  };
  RandomTimes failures_;
  RandomTimes false_notices_;
  // The losses that mean_stay() has been asked about, in order, and the last change among them.
  mutable std::vector<double> losses_{};
  mutable double losses_until_ = 0;
};

}  // namespace rubato
