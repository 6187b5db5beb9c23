// The seconds of a step on one host are those of the busiest core, of the all-reduce and of the
// update. With several hosts they follow HostSum: each host computes its subtrees one after the
// other, sends a sum while it computes the next, adds its part of all sums, and gathers the other
// parts. Bytes are counted from the same borders and trees that training uses (host_borders(),
// roots_within()). The all-reduce costs what cost_of() finds for its schedule, except for the ring,
// which has a formula. Ranges are checked twice: when text is read, with the names of its
// arguments, and in require_valid(), because programs fill in a ClusterModel without text.

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/cluster_model.hpp>
#include <rubato/steps/step_plan.hpp>

#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "numbers/collective/host_runs.hpp"
#include "numbers/collective/schedule.hpp"
#include "numbers/collective/summation_tree.hpp"

namespace rubato {

namespace {

// HostSum sends these scalars of a subtree's sum besides its values: loss, weight and the numbers
// of minibatches.
constexpr std::int64_t kScalarBytes = 4 * sizeof(double);
constexpr std::int64_t kAlignment = sizeof(double);

}  // namespace

std::vector<HostTraffic> host_traffic(std::int64_t minibatches, std::span<const double> weights,
                                      std::int64_t values, std::int64_t value_bytes) {
  const auto hosts = static_cast<std::int64_t>(weights.size());
  const SummationTree tree(minibatches);
  const std::vector<std::int64_t> borders = host_borders(minibatches, weights);
  std::vector<HostTraffic> traffic(weights.size());
  std::int64_t all_roots = 0;
  for (std::size_t host = 0; host < traffic.size(); ++host) {
    const auto roots = roots_within(tree, borders[host], borders[host + 1]);
    traffic[host].roots = static_cast<std::int64_t>(roots.size());
    all_roots += traffic[host].roots;
  }
  // The last host has the rest after the equal parts of the others.
  const std::int64_t part = values / hosts;
  const auto part_bytes = [&](std::int64_t host) {
    return (host == hosts - 1 ? values - part * host : part) * value_bytes;
  };
  const auto sum_bytes = [&](std::int64_t host) {
    return (part_bytes(host) + kAlignment - 1) / kAlignment * kAlignment + kScalarBytes;
  };
  const std::int64_t all_sums = (hosts - 1) * sum_bytes(0) + sum_bytes(hosts - 1);
  for (std::int64_t host = 0; host < hosts; ++host) {
    HostTraffic& of = traffic[static_cast<std::size_t>(host)];
    of.sums_sent = of.roots * (all_sums - sum_bytes(host));
    of.sums_received = (all_roots - of.roots) * sum_bytes(host);
    of.parts_sent = (hosts - 1) * part_bytes(host);
    of.parts_received = values * value_bytes - part_bytes(host);
  }
  return traffic;
}

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostCores = std::int64_t{1} << 20;
// Schedules move whole elements.
constexpr std::int64_t kElementBytes = 4;

void require(bool holds, std::string_view name, double value, const RealRange& range) {
  if (holds) return;
  throw_error("cluster: {} is {}; accepted: {}", name, value, range.accepted_for(value));
}

void require_in(std::string_view name, double value, const RealRange& range) {
  require(range.holds(value), name, value, range);
}

MarketModel read_market(Spec& spec) {
  MarketModel market;
  market.machine = spec.whole("machine", market.machine, 1, kMostCores);
  market.provision_seconds = spec.real("provision", market.provision_seconds, kNotNegative);
  market.join_seconds = spec.real("join", market.join_seconds, kNotNegative);
  market.join_spread = spec.real("join-spread", market.join_spread, kNotNegative);
  market.join_seed = static_cast<std::uint64_t>(spec.whole("join-seed", 1, 0, kMostBytes));
  market.notice_seconds = spec.real("notice", market.notice_seconds, kNotNegative);
  market.loses = spec.choice("loses", market.loses, kLoses);
  market.billing = spec.choice("billing", market.billing, kBillings);
  market.mtbf_seconds =
      spec.real("mtbf", Unset{"no failures"}, kPositive).value_or(market.mtbf_seconds);
  market.mtbf_seed = static_cast<std::uint64_t>(spec.whole("mtbf-seed", 1, 0, kMostBytes));
  market.false_notice_seconds = spec.real("false-notice", Unset{"no false notices"}, kPositive)
                                    .value_or(market.false_notice_seconds);
  market.false_notice_seed =
      static_cast<std::uint64_t>(spec.whole("false-notice-seed", 1, 0, kMostBytes));
  market.on_demand_devices = spec.whole("on-demand", 0, 0, kMostCores);
  market.on_demand_price = spec.real("on-demand-price", market.on_demand_price, kNotNegative);
  market.move.latency_seconds =
      spec.real("zone-latency", market.move.latency_seconds, kNotNegative);
  market.move.bandwidth = spec.real("zone-bandwidth", market.move.bandwidth, kPositive);
  market.move.state_bytes = spec.whole("state-bytes", Unset{"as bytes"}, 0, kMostBytes);
  market.move.egress_price = spec.real("egress", market.move.egress_price, kNotNegative);
  if (market.on_demand_devices == 0) {
    spec.refuse("on-demand-price", "does nothing without on-demand; accepted: with it");
  }
  if (market.join_seconds == 0) {
    spec.refuse("join-spread", "does nothing without join; accepted: with it");
  }
  if (market.join_spread == 0) {
    spec.refuse("join-seed", "does nothing without join-spread; accepted: with it");
  }
  if (market.mtbf_seconds == 0) {
    spec.refuse("mtbf-seed", "does nothing without mtbf; accepted: with it");
  }
  if (market.notice_seconds == 0) {
    spec.refuse("false-notice", "does nothing without notice; accepted: with it");
  }
  if (market.false_notice_seconds == 0) {
    spec.refuse("false-notice-seed", "does nothing without false-notice; accepted: with it");
  }
  return market;
}

ClusterModel read_cluster(Spec& spec, std::int64_t gradient_bytes) {
  ClusterModel model;
  model.substep_seconds = spec.real("substep", model.substep_seconds, kPositive);
  model.algorithm = spec.one_of("algorithm", model.algorithm, algorithm_names());
  model.gradient_bytes = spec.whole("bytes", Unset{"those of the model's gradient"}, 0, kMostBytes)
                             .value_or(gradient_bytes);
  model.cores_per_host = spec.whole("cores-per-host", model.cores_per_host, 1, kMostCores);
  model.latency_between_hosts = spec.real("latency", model.latency_between_hosts, kNotNegative);
  model.bandwidth_between_hosts = spec.real("bandwidth", model.bandwidth_between_hosts, kPositive);
  model.latency_within_host = spec.real("host-latency", model.latency_within_host, kNotNegative);
  model.bandwidth_within_host = spec.real("host-bandwidth", model.bandwidth_within_host, kPositive);
  model.hosts = spec.whole("hosts", model.hosts, 1, kMostModelledHosts);
  model.host_weights = spec.reals("host-weights", Unset{"all hosts the same"}, kPositive)
                           .value_or(std::vector<double>());
  model.memory_bandwidth = spec.real("memory-bandwidth", model.memory_bandwidth, kPositive);
  model.update_seconds = spec.real("update", model.update_seconds, kNotNegative);
  model.checkpoint_steps = spec.whole("checkpoint-steps", model.checkpoint_steps, 0, kMostBytes);
  model.checkpoint_seconds = spec.real("checkpoint", model.checkpoint_seconds, kNotNegative);
  model.market = read_market(spec);
  model.restart_seconds = spec.real("restart", Unset{"as long as join"}, kNotNegative)
                              .value_or(model.market.join_seconds);
  if (model.checkpoint_seconds > 0 && model.checkpoint_steps == 0 &&
      model.market.loses == Loses::step) {
    spec.refuse("checkpoint", "does nothing without checkpoint-steps; accepted: with it");
  }
  if (model.hosts == 1) {
    for (const std::string_view key : {"host-weights", "memory-bandwidth"}) {
      spec.refuse(key, "does nothing on one host; accepted: with hosts");
    }
  } else {
    spec.refuse("cores-per-host",
                "does nothing with hosts, which share the cores; accepted: without it");
  }
  if (spec.has("host-weights") &&
      static_cast<std::int64_t>(model.host_weights.size()) != model.hosts) {
    spec.reject("host-weights", fmt::format("are {}; accepted: one for each of {} hosts",
                                            model.host_weights.size(), model.hosts));
  }
  return model;
}

double latest(const std::vector<std::vector<double>>& ends) {
  double last = 0;
  for (const std::vector<double>& of_host : ends) {
    if (!of_host.empty()) last = std::max(last, of_host.back());
  }
  return last;
}

// The end of messages that go through one link one after the other, none before `begin`, and that
// are ready at the times `ready`, which ascend.
double end_of_messages(const std::vector<double>& ready, double begin, double seconds_of_each) {
  double end = begin;
  for (const double at : ready) end = std::max(end, at) + seconds_of_each;
  return end;
}

Network network_of(const ClusterModel& model) {
  return {.within_host = {.latency = model.latency_within_host,
                          .per_byte = 1 / model.bandwidth_within_host},
          .between_hosts = {.latency = model.latency_between_hosts,
                            .per_byte = 1 / model.bandwidth_between_hosts},
          .ranks_per_host = static_cast<Rank>(model.hosts > 1 ? kMostCores : model.cores_per_host)};
}

}  // namespace

void require_valid(const ClusterModel& model) {
  require_in("substep", model.substep_seconds, kPositive);
  require_in("latency", model.latency_between_hosts, kNotNegative);
  require_in("bandwidth", model.bandwidth_between_hosts, kPositive);
  require_in("host-latency", model.latency_within_host, kNotNegative);
  require_in("host-bandwidth", model.bandwidth_within_host, kPositive);
  require_in("memory-bandwidth", model.memory_bandwidth, kPositive);
  require_in("update", model.update_seconds, kNotNegative);
  require_in("checkpoint", model.checkpoint_seconds, kNotNegative);
  require_in("restart", model.restart_seconds, kNotNegative);
  require_in("provision", model.market.provision_seconds, kNotNegative);
  require_in("join", model.market.join_seconds, kNotNegative);
  require_in("join-spread", model.market.join_spread, kNotNegative);
  require_in("notice", model.market.notice_seconds, kNotNegative);
  require_in("mtbf", model.market.mtbf_seconds, kNotNegative);
  require_in("false-notice", model.market.false_notice_seconds, kNotNegative);
  if (model.market.false_notice_seconds > 0 && model.market.notice_seconds == 0) {
    throw Error("cluster: false-notice does nothing without notice; accepted: with it");
  }
  require_in("on-demand-price", model.market.on_demand_price, kNotNegative);
  require_in("zone-latency", model.market.move.latency_seconds, kNotNegative);
  require_in("zone-bandwidth", model.market.move.bandwidth, kPositive);
  require_in("state-bytes", static_cast<double>(model.market.move.state_bytes.value_or(0)),
             kNotNegative);
  require_in("egress", model.market.move.egress_price, kNotNegative);
  require_in("price", model.price.constant, kNotNegative);
  require_in("bytes", static_cast<double>(model.gradient_bytes), kNotNegative);
  if (model.cores_per_host < 1 || model.cores_per_host > kMostCores) {
    throw_error("cluster: cores-per-host is {}; accepted: 1 to {}", model.cores_per_host,
                kMostCores);
  }
  if (model.market.on_demand_devices < 0 || model.market.on_demand_devices > kMostCores) {
    throw_error("cluster: on-demand is {}; accepted: 0 to {}", model.market.on_demand_devices,
                kMostCores);
  }
  if (model.market.machine < 1 || model.market.machine > kMostCores) {
    throw_error("cluster: machine is {}; accepted: 1 to {}", model.market.machine, kMostCores);
  }
  if (model.hosts < 1 || model.hosts > kMostModelledHosts) {
    throw_error("cluster: hosts is {}; accepted: 1 to {}", model.hosts, kMostModelledHosts);
  }
  for (const double weight : model.host_weights) require_in("host-weights", weight, kPositive);
  if (!model.host_weights.empty() &&
      static_cast<std::int64_t>(model.host_weights.size()) != model.hosts) {
    throw_error("cluster: host-weights are {}; accepted: one for each of {} hosts",
                model.host_weights.size(), model.hosts);
  }
  if (model.checkpoint_steps < 0) {
    throw_error("cluster: checkpoint-steps is {}; accepted: 0 (never) and more",
                model.checkpoint_steps);
  }
  require_algorithm(model.algorithm);
  std::set<CoreRank> seen;
  for (const SlowCore& slow : model.slow_cores) {
    if (slow.core.value() < 0 || !(slow.factor >= 1) || !std::isfinite(slow.factor) ||
        !seen.insert(slow.core).second) {
      throw_error(
          "cluster: core {} is slower by a factor of {}; accepted: a core from 0 on, once, and a "
          "factor of at least 1",
          slow.core.value(), slow.factor);
    }
  }
}

ClusterModel parse_cluster(std::string_view text, std::int64_t gradient_bytes) {
  Spec spec(text.empty() ? std::string() : fmt::format(":{}", text));
  ClusterModel model = read_cluster(spec, gradient_bytes);
  spec.finish();
  return model;
}

std::string without_market(std::string_view text) {
  Spec market = Spec::example("");
  static_cast<void>(read_market(market));
  std::vector<std::string_view> kept = split_at(text, ',');
  std::erase_if(kept, [&](std::string_view argument) {
    return std::ranges::find(market.arguments(), argument.substr(0, argument.find('=')),
                             &Argument::name) != market.arguments().end();
  });
  return fmt::to_string(fmt::join(kept, ","));
}

std::vector<Argument> cluster_arguments() {
  Spec spec = Spec::example("");
  static_cast<void>(read_cluster(spec, 0));
  return spec.arguments();
}

double ClusterModel::move_seconds() const {
  return market.move.latency_seconds +
         static_cast<double>(market.move.state_bytes.value_or(gradient_bytes)) /
             market.move.bandwidth;
}

double ClusterModel::move_money() const {
  constexpr double kGigabyte = 1e9;
  return static_cast<double>(market.move.state_bytes.value_or(gradient_bytes)) / kGigabyte *
         market.move.egress_price;
}

std::vector<double> host_weights_of(const ClusterModel& model,
                                    std::span<const std::int64_t> host_cores) {
  std::vector<double> weights = model.host_weights;
  weights.resize(static_cast<std::size_t>(model.hosts), 1.0);
  return weights_in_step(std::move(weights), host_cores);
}

StepTimes::StepTimes(ClusterModel model) : model_(std::move(model)) {
  require_valid(model_);
  weights_ = host_weights_of(model_);
}

double StepTimes::compute_seconds(std::int64_t minibatches, std::int64_t cores) const {
  return compute_seconds(minibatches, cores, 0);
}

double StepTimes::compute_seconds(std::int64_t minibatches, std::int64_t cores,
                                  std::int64_t first_core) const {
  const auto share = [&](std::int64_t core) {
    return minibatches / cores + (core < minibatches % cores ? 1 : 0);
  };
  double slowest = static_cast<double>(share(0));
  for (const SlowCore& slow : model_.slow_cores) {
    const std::int64_t core = slow.core.value() - first_core;
    if (core < 0 || core >= cores) continue;
    slowest = std::max(slowest, static_cast<double>(share(core)) * slow.factor);
  }
  return slowest * model_.substep_seconds;
}

double StepTimes::reduce_seconds(std::int64_t busy) {
  if (busy <= 1 || model_.gradient_bytes == 0) return 0;
  const auto known = reduce_seconds_.find(busy);
  if (known != reduce_seconds_.end()) return known->second;
  double seconds = 0;
  const std::int64_t length = (model_.gradient_bytes + kElementBytes - 1) / kElementBytes;
  const Network network = network_of(model_);
  if (model_.algorithm == "ring") {
    const std::int64_t chunk = (length + busy - 1) / busy;
    const auto bytes = static_cast<double>(chunk * kElementBytes);
    const auto of_link = [bytes](const Network::Link& link) {
      return link.latency + bytes * link.per_byte;
    };
    // Only existing links count: within hosts of several cores, and between hosts.
    double phase = 0;
    if (network.ranks_per_host > 1) phase = of_link(network.within_host);
    if (busy > network.ranks_per_host) phase = std::max(phase, of_link(network.between_hosts));
    seconds = static_cast<double>(2 * (busy - 1)) * phase;
  } else {
    seconds = cost_of(make_all_reduce(model_.algorithm, static_cast<Rank>(busy), length),
                      kElementBytes, network)
                  .seconds;
  }
  // Only a complete result is kept: the schedule may not fit into memory.
  reduce_seconds_.emplace(busy, seconds);
  return seconds;
}

std::vector<std::vector<double>> StepTimes::subtree_ends(std::int64_t minibatches,
                                                         std::int64_t cores,
                                                         std::span<const std::int64_t> host_cores) {
  const SummationTree tree(minibatches);
  const HostShares shares =
      shares_of_hosts({.leaves = minibatches, .cores = cores, .host_cores = host_cores}, weights_);
  const std::vector<std::int64_t>& borders = shares.leaf_borders;
  std::vector<std::vector<double>> ends(weights_.size());
  for (std::size_t host = 0; host < ends.size(); ++host) {
    const std::int64_t own = shares.cores_of(host);
    double seconds = 0;
    for (const TreeNode root : roots_within(tree, borders[host], borders[host + 1])) {
      const auto [first, end] = tree.leaves_below(root);
      seconds += compute_seconds(end - first, own, shares.core_borders[host]) +
                 reduce_seconds(busy_cores(end - first, own));
      ends[host].push_back(seconds);
    }
  }
  return ends;
}

double StepTimes::host_seconds(std::int64_t minibatches, std::int64_t cores,
                               std::span<const std::int64_t> host_cores) {
  return latest(subtree_ends(minibatches, cores, host_cores));
}

ExchangeSeconds StepTimes::exchange_seconds(std::int64_t minibatches, std::int64_t cores,
                                            std::span<const std::int64_t> host_cores) {
  if (model_.hosts == 1) return {};
  std::tuple key(minibatches, cores,
                 std::vector<std::int64_t>(host_cores.begin(), host_cores.end()));
  const auto known = exchange_seconds_.find(key);
  if (known != exchange_seconds_.end()) return known->second;
  const std::int64_t values = (model_.gradient_bytes + kElementBytes - 1) / kElementBytes;
  const auto bytes = static_cast<double>(values * kElementBytes);
  const std::vector<HostTraffic> traffic =
      host_traffic(minibatches, host_weights_of(model_, host_cores), values, kElementBytes);
  const double latency = model_.latency_between_hosts;
  const double per_byte = 1 / model_.bandwidth_between_hosts;
  // The times at which each sum has been copied into messages.
  std::vector<std::vector<double>> ready = subtree_ends(minibatches, cores, host_cores);
  const double computed = latest(ready);
  std::int64_t all_roots = 0;
  for (std::vector<double>& sums : ready) {
    double put = 0;
    for (double& at : sums) at += put += bytes / model_.memory_bandwidth;
    all_roots += static_cast<std::int64_t>(sums.size());
  }
  double sums = 0;
  std::int64_t parts = 0;
  for (std::size_t host = 0; host < ready.size(); ++host) {
    const HostTraffic& of = traffic[host];
    parts = std::max({parts, of.parts_sent, of.parts_received});
    if (of.roots == 0) continue;
    // Receiving takes no longer: a host gets from each other host a part of that host's sums.
    const std::int64_t each = of.sums_sent / of.roots;
    sums =
        std::max(sums, end_of_messages(ready[host], latency, per_byte * static_cast<double>(each)));
  }
  const ExchangeSeconds seconds{.sums = sums + latency - computed,
                                .memory = bytes * static_cast<double>(all_roots) /
                                          static_cast<double>(model_.hosts) /
                                          model_.memory_bandwidth,
                                .parts = latency + per_byte * static_cast<double>(parts)};
  exchange_seconds_.emplace(std::move(key), seconds);
  return seconds;
}

double StepTimes::step_seconds(std::int64_t minibatches, std::int64_t cores,
                               std::span<const std::int64_t> host_cores) {
  if (model_.hosts > 1) {
    return host_seconds(minibatches, cores, host_cores) +
           exchange_seconds(minibatches, cores, host_cores).all() + model_.update_seconds;
  }
  return compute_seconds(minibatches, cores) + reduce_seconds(busy_cores(minibatches, cores)) +
         model_.update_seconds;
}

}  // namespace rubato
