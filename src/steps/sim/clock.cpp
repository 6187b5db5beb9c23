#include "clock.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>

namespace rubato {

namespace {

constexpr std::string_view kClock = "source.clock";
constexpr std::string_view kParts = "source.clock_parts";
constexpr std::string_view kBinding = "source.binding";

}  // namespace

void spend_core_seconds(ClockTime& time, double seconds, double core_seconds,
                        const ClusterModel& cluster, std::optional<double> money) {
  time.seconds += seconds;
  time.core_seconds += core_seconds;
  if (money) {
    time.money += *money;
  } else {
    time.money = time.core_seconds / kSecondsOfHour * cluster.price.constant;
  }
}

void spend(ClockTime& time, double seconds, std::int64_t cores, const ClusterModel& cluster) {
  spend_core_seconds(time, seconds, seconds * static_cast<double>(cores), cluster);
}

std::int64_t checkpoints_in(const ClusterModel& cluster, std::int64_t steps, std::int64_t more) {
  const std::int64_t every = cluster.checkpoint_steps;
  return every > 0 ? (steps + more) / every - steps / every : 0;
}

double seconds_of_step(StepTimes& times, std::int64_t minibatches, std::int64_t cores,
                       std::span<const std::int64_t> host_cores, std::int64_t steps) {
  const double seconds = times.step_seconds(minibatches, cores, host_cores);
  const bool checkpoint = checkpoints_in(times.model(), steps, 1) > 0;
  return checkpoint ? seconds + times.model().checkpoint_seconds : seconds;
}

std::string text_of(const ClusterModel& cluster) {
  const ClusterModel& c = cluster;
  std::string text = fmt::format(
      "substep {} algorithm {} bytes {} hosts {} within {} {} between {} {} update {} checkpoint "
      "{} {} restart {}\n",
      c.substep_seconds, c.algorithm, c.gradient_bytes, c.cores_per_host, c.latency_within_host,
      c.bandwidth_within_host, c.latency_between_hosts, c.bandwidth_between_hosts, c.update_seconds,
      c.checkpoint_steps, c.checkpoint_seconds, c.restart_seconds);
  if (c.hosts > 1) {
    text += fmt::format("hosts {} weights {} memory {}\n", c.hosts,
                        fmt::join(host_weights_of(c), " "), c.memory_bandwidth);
  }
  MarketModel m = c.market;
  m.on_demand_price = 0;
  m.move.egress_price = 0;
  if (m.move != MoveModel{}) {
    text += fmt::format("move {} {} bytes {}\n", m.move.latency_seconds, m.move.bandwidth,
                        m.move.state_bytes.value_or(c.gradient_bytes));
    m.move = {};
  }
  if (m.false_notice_seconds > 0) {
    text += fmt::format("false notices {} {}\n", m.false_notice_seconds, m.false_notice_seed);
  }
  if (m != MarketModel{}) {
    text += fmt::format("market {} {} join {} {} {} notice {} loses {} billing {} mtbf {} {}\n",
                        m.machine, m.provision_seconds, m.join_seconds, m.join_spread, m.join_seed,
                        m.notice_seconds, choice_name(kLoses, m.loses),
                        choice_name(kBillings, m.billing), m.mtbf_seconds, m.mtbf_seed,
                        m.on_demand_devices);
  }
  for (const SlowCore& slow : c.slow_cores) {
    text += fmt::format("slow {} {}\n", slow.core.value(), slow.factor);
  }
  return text;
}

void visit_clock(StateVisitor& state, const std::string& binding, ClockTime& time) {
  if (state.bound(kBinding, binding) != binding && !state.forks()) {
    throw Error("the state is of another cluster or policy; accepted: the same");
  }
  state.numbers(kClock, time, "the clock");
  std::array<double, 3> parts{time.join_seconds, time.redone_seconds, time.checkpoint_seconds};
  if (state.has(kParts, std::ranges::any_of(parts, [](double part) { return part > 0; }))) {
    state.values(kParts, std::span<double>(parts));
    state.require(
        std::ranges::all_of(parts, [](double part) { return part >= 0 && std::isfinite(part); }),
        "the parts of the clock's time");
  } else {
    parts = {};
  }
  time.join_seconds = parts[0];
  time.redone_seconds = parts[1];
  time.checkpoint_seconds = parts[2];
}

}  // namespace rubato
