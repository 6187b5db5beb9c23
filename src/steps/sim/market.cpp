// A fleet is brought up to a time by applying the changes of the availability in order: machines
// that come form a group with its own times of payment and joining, and devices that leave are
// taken from the youngest group. Groups that no longer differ are merged, so a fleet stays small.
// Random times are functions of a seed and a number, and the times drawn so far are kept in order,
// so times may be asked about in any order. These lists are mutable without a lock: one thread at a
// time may use a Market. In a plain market devices join at once at a constant price, and the fleet
// is a single group.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <rubato/base/spec.hpp>
#include <rubato/steps/market.hpp>
#include <rubato/steps/random.hpp>

#include "base/core/portable_math.hpp"
#include "base/core/seconds.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

constexpr double kFirstMinute = 60;
// Times that are drawn are whole milliseconds, which an availability can hold exactly.
constexpr double kMilliseconds = 1000;

// A device that the provider ends sooner costs nothing.
double free_seconds(Billing billing) {
  if (billing == Billing::aws) return kSecondsOfHour;
  return billing == Billing::gcp ? kFirstMinute : 0;
}

template <class Counts>
std::int64_t devices_where(const std::vector<FleetGroup>& groups, const Counts& counts) {
  std::int64_t devices = 0;
  for (const FleetGroup& group : groups) devices += counts(group) ? group.devices : 0;
  return devices;
}

}  // namespace

DevicePrice parse_price(std::string_view text) {
  if (text == "trace") return {.of_trace = true};
  if (is_number(text)) return {.constant = parse_real(text, kNotNegative)};
  throw_error("'{}' is no price; accepted: {}, or trace", text, kNotNegative.words);
}

std::int64_t Fleet::joined(double seconds) const {
  return devices_where(groups, [&](const FleetGroup& group) { return group.joins <= seconds; });
}

std::int64_t Fleet::joining(double seconds) const {
  return devices_where(groups, [&](const FleetGroup& group) {
    return group.paid_from <= seconds && seconds < group.joins;
  });
}

std::int64_t Fleet::coming(double seconds) const {
  return devices_where(groups, [&](const FleetGroup& group) { return seconds < group.joins; });
}

Market::Market(Availability availability, MarketModel model, DevicePrice price)
    : availability_(std::move(availability)),
      model_(model),
      price_(price),
      failures_{.mean = model.mtbf_seconds, .seed = model.mtbf_seed, .per_second = kMilliseconds},
      false_notices_{
          .mean = model.false_notice_seconds, .seed = model.false_notice_seed, .stream = 1} {
  if (price_.of_trace && availability_.prices().empty()) {
    throw_error(
        "{}: it has no prices; accepted: a column 'price' beside the devices (docs/traces.md), or "
        "a constant price",
        availability_.source());
  }
}

bool Market::is_plain() const {
  return model_.provision_seconds == 0 && model_.join_seconds == 0 &&
         model_.billing == Billing::steps && !price_.of_trace;
}

std::int64_t Market::offered(double seconds) const {
  return availability_.at(seconds).value_or(0) / model_.machine * model_.machine;
}

double Market::price_at(double seconds) const {
  return price_.of_trace ? availability_.price_at(seconds).value_or(0) : price_.constant;
}

double Market::cost(double begin, double end) const {
  double money = 0;
  while (begin < end) {
    const std::optional<double> change =
        price_.of_trace ? availability_.next_price(begin) : std::nullopt;
    const double until = std::min(end, change.value_or(end));
    money += (until - begin) / kSecondsOfHour * price_at(begin);
    begin = until;
  }
  return money;
}

double Market::join_seconds(std::uint64_t machine) const {
  if (model_.join_spread == 0) return model_.join_seconds;
  const NormalNumbers draws(StreamKey{.seed = model_.join_seed});
  return std::round(model_.join_seconds * exact::exp(model_.join_spread * draws[machine]) *
                    kMilliseconds) /
         kMilliseconds;
}

double Market::RandomTimes::after(double seconds) const {
  if (mean == 0) return std::numeric_limits<double>::infinity();
  const NormalNumbers draws(StreamKey{.seed = seed, .step = stream});
  while (times.empty() || times.back() <= seconds) {
    const double last = times.empty() ? 0 : times.back();
    const double between = -exact::log1p(-draws.uniform(times.size())) * mean;
    // Two at the same time would be one, and all of them would never come to an end.
    times.push_back(last + std::max(1.0, std::round(between * per_second)) / per_second);
  }
  return *std::ranges::upper_bound(times, seconds);
}

void Market::grow(Fleet& fleet, std::int64_t devices, double seconds) const {
  const double paid_from = seconds + model_.provision_seconds;
  const std::int64_t each = model_.join_spread == 0 ? devices : model_.machine;
  for (; devices > 0; devices -= each) {
    fleet.groups.push_back({.devices = each,
                            .paid_from = paid_from,
                            .joins = paid_from + join_seconds(fleet.machines)});
    fleet.machines += static_cast<std::uint64_t>(each / model_.machine);
  }
}

double Market::shrink(Fleet& fleet, std::int64_t devices, double seconds) const {
  double money = 0;
  while (devices > 0) {
    FleetGroup& last = fleet.groups.back();
    const std::int64_t leaving = std::min(devices, last.devices);
    if (seconds - last.paid_from < free_seconds(model_.billing)) {
      money += static_cast<double>(leaving) * cost(last.paid_from, seconds);
    }
    devices -= leaving;
    last.devices -= leaving;
    if (last.devices == 0) fleet.groups.pop_back();
  }
  return money;
}

double Market::settle(Fleet& fleet, double seconds) const {
  if (is_plain()) {
    fleet.groups = {{.devices = offered(seconds)}};
    fleet.settled = seconds;
    return 0;
  }
  double money = 0;
  const auto apply = [&](double at) {
    const std::int64_t change =
        offered(at) - devices_where(fleet.groups, [](const FleetGroup&) { return true; });
    if (change > 0) grow(fleet, change, at);
    if (change < 0) money += shrink(fleet, -change, at);
    fleet.settled = at;
  };
  if (fleet.settled < 0) {
    if (fleet.since > seconds) return 0;
    apply(fleet.since);
  }
  for (std::optional<double> change = availability_.next_change(fleet.settled);
       change && *change <= seconds; change = availability_.next_change(*change)) {
    apply(*change);
  }
  // Groups that no longer differ become one.
  while (fleet.groups.size() > 1 && fleet.groups[1].joins <= seconds &&
         seconds - fleet.groups[1].paid_from >= free_seconds(model_.billing)) {
    fleet.groups[1].devices += fleet.groups[0].devices;
    fleet.groups.erase(fleet.groups.begin());
  }
  return money;
}

std::optional<double> Market::next_offer(double seconds) const {
  const std::optional<double> devices = availability_.next_change(seconds);
  const std::optional<double> price =
      price_.of_trace ? availability_.next_price(seconds) : std::nullopt;
  return devices && price ? std::min(*devices, *price) : devices ? devices : price;
}

double Market::mean_stay(double seconds) const {
  for (std::optional<double> change = availability_.next_change(losses_until_);
       change && *change <= seconds; change = availability_.next_change(losses_until_)) {
    // The devices before a change are those at the last microsecond before it.
    constexpr double kMicrosecond = 1e-6;
    if (offered(*change) < offered(*change - kMicrosecond)) losses_.push_back(*change);
    losses_until_ = *change;
  }
  const auto losses = std::ranges::upper_bound(losses_, seconds) - losses_.begin();
  return losses == 0 ? std::numeric_limits<double>::infinity()
                     : seconds / static_cast<double>(losses);
}

std::optional<double> Market::next_event(const Fleet& fleet, double seconds) const {
  std::optional<double> next = next_offer(seconds);
  const auto consider = [&](double at) {
    if (at > seconds && (!next || at < *next)) next = at;
  };
  for (const FleetGroup& group : fleet.groups) {
    consider(group.paid_from);
    consider(group.joins);
  }
  return next;
}

}  // namespace rubato
