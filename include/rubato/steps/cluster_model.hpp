#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/steps/market.hpp>

namespace rubato {

/// Bytes of messages through the network interface of one of several hosts in a step
/// (docs/hosts.md), without what the network adds to a message.
///
/// With S bytes of values, h hosts and r subtrees of its own, a host sends S (h - 1) / h bytes for
/// each subtree, and as much again for its part of the total:
///
///     sent = (r + 1) S (h - 1) / h        2 S (h - 1) / h where it has one subtree
///
/// It receives its part, S / h, of the others' subtrees, and the others' parts of the total. Each
/// part of a subtree's sum has 32 more bytes for the loss, its weight and two numbers of
/// minibatches, and padding to a multiple of 8 bytes.
struct HostTraffic {
  /// Subtrees of the summation tree whose sums the host computes; 0 if it has no minibatches.
  std::int64_t roots = 0;
  /// Bytes of subtrees' sums sent to the other hosts and received from them.
  std::int64_t sums_sent = 0;
  std::int64_t sums_received = 0;
  /// Bytes of parts of the total sent and received.
  std::int64_t parts_sent = 0;
  std::int64_t parts_received = 0;

  [[nodiscard]] std::int64_t sent() const { return sums_sent + parts_sent; }
  [[nodiscard]] std::int64_t received() const { return sums_received + parts_received; }
  friend bool operator==(const HostTraffic&, const HostTraffic&) = default;
};

/// The traffic of each host in a step of `minibatches`, at least 1, divided according to the
/// weights of the hosts, which are at least 0 and not all 0. `values` are the numbers summed for a
/// minibatch: its gradient, and others that a model averages. Optional data are left out: norms of
/// the gradient (8 bytes for each of their blocks) and counters.
[[nodiscard]] std::vector<HostTraffic> host_traffic(std::int64_t minibatches,
                                                    std::span<const double> weights,
                                                    std::int64_t values,
                                                    std::int64_t value_bytes = 4);

/// A core that is slower than the others: each of its minibatches takes `factor` times as long.
struct SlowCore {
  CoreRank core;
  double factor = 1;

  friend bool operator==(const SlowCore&, const SlowCore&) = default;
};

/// The hypothetical machines of a run, and their costs.
struct ClusterModel {
  /// Seconds that a core needs for a minibatch, forward and backward; above 0.
  double substep_seconds = 0.01;
  /// Slower cores, each at most once, with factors of at least 1.
  std::vector<SlowCore> slow_cores{};

  /// The all-reduce algorithm of the cores' gradients, in the syntax of make_all_reduce().
  std::string algorithm = "ring";
  /// Bytes of a core's gradient; at least 0.
  std::int64_t gradient_bytes = 0;
  /// Cores of a host, at least 1.
  std::int64_t cores_per_host = 8;
  /// Latency in seconds and bandwidth in bytes per second of messages between two cores of a host,
  /// and between hosts. Latencies are at least 0, bandwidths above 0.
  double latency_within_host = 0;
  double bandwidth_within_host = 1e11;
  double latency_between_hosts = 0;
  double bandwidth_between_hosts = 1e9;

  /// Hosts that train the run together as `rubato train --hosts` does (docs/hosts.md), from 1 to
  /// kMostModelledHosts. With several, each has its share of the minibatches and of the cores, all
  /// cores of a host are reached within it, and its network interface has the latency and the
  /// bandwidth between hosts.
  std::int64_t hosts = 1;
  /// The share of a step that each host computes, relative to the others, above 0; empty for equal
  /// shares.
  std::vector<double> host_weights{};
  /// Bytes per second that a host copies into messages or adds; above 0.
  double memory_bandwidth = 5e9;

  /// Seconds between the sum and the next step; at least 0.
  double update_seconds = 0;
  /// A checkpoint follows every `checkpoint_steps` steps (0 for never), and takes
  /// `checkpoint_seconds`.
  std::int64_t checkpoint_steps = 0;
  double checkpoint_seconds = 0;
  /// Seconds from the loss of a core until the remaining cores begin the step again; at least 0.
  double restart_seconds = 0;

  MarketModel market{};
  DevicePrice price{};

  /// Seconds for which the state is on its way from one zone to another, and the money for that.
  [[nodiscard]] double move_seconds() const;
  [[nodiscard]] double move_money() const;

  friend bool operator==(const ClusterModel&, const ClusterModel&) = default;
};

inline constexpr std::int64_t kMostModelledHosts = 1024;

/// Throws Error for a value out of its range.
void require_valid(const ClusterModel& model);

/// The value of ClusterModel::gradient_bytes if the text does not give it and the model is not
/// known yet.
inline constexpr std::int64_t kBytesOfModel = -1;

/// Parses "substep=0.01,latency=1e-4,bandwidth=1e9,...", the arguments of a model without a name,
/// which cluster_arguments() lists. A gradient has `gradient_bytes` unless the text gives them.
/// Throws Error.
[[nodiscard]] ClusterModel parse_cluster(std::string_view text, std::int64_t gradient_bytes = 0);
/// The text of a cluster without the arguments of its market (ClusterModel::market): the same for
/// devices that neither come nor go.
[[nodiscard]] std::string without_market(std::string_view text);

struct Argument;  // base/spec.hpp
[[nodiscard]] std::vector<Argument> cluster_arguments();

/// The weights of the hosts; all 1 if the model has none. If a step gives the cores of each host
/// (TraceStep::host_cores), of no more hosts than there are, the weights are multiplied by them.
[[nodiscard]] std::vector<double> host_weights_of(const ClusterModel& model,
                                                  std::span<const std::int64_t> host_cores = {});

/// The time of a step of several hosts between its minibatches and its update.
struct ExchangeSeconds {
  /// Seconds from the end of the slowest host's minibatches until each host has its part of all
  /// subtrees' sums; those of earlier subtrees are sent while later ones are computed.
  double sums = 0;
  /// Seconds to add these parts.
  double memory = 0;
  /// Seconds until all hosts have all parts of the result.
  double parts = 0;

  [[nodiscard]] double all() const { return sums + memory + parts; }
};

/// The durations of steps on a cluster: pure functions of the model.
class StepTimes {
 public:
  /// Throws Error as require_valid() does.
  explicit StepTimes(ClusterModel model);

  /// The time of the slowest core's minibatches if `cores` of one host divide `minibatches` evenly;
  /// the first cores have one more.
  [[nodiscard]] double compute_seconds(std::int64_t minibatches, std::int64_t cores) const;
  /// The time until the gradients of `busy` cores are one sum at each of them: cost_of() the
  /// algorithm's schedule, 0 for one core. A ring has about twice as many phases as cores;
  /// each counts as the largest part of the values on the slowest link.
  [[nodiscard]] double reduce_seconds(std::int64_t busy);
  /// With several hosts: the time of the slowest host's own part. A host computes and reduces its
  /// subtrees one after the other, each on all of its cores; cores are numbered across hosts.
  /// `host_cores` means TraceStep::host_cores, here and below.
  [[nodiscard]] double host_seconds(std::int64_t minibatches, std::int64_t cores,
                                    std::span<const std::int64_t> host_cores = {});
  /// The time of the exchange between several hosts; 0 for one. When a subtree has been summed, its
  /// sum goes into messages, which a host sends one after the other while it receives others. A
  /// message is not sent before its receiver has announced that it waits for it, which all hosts do
  /// when a step begins.
  [[nodiscard]] ExchangeSeconds exchange_seconds(std::int64_t minibatches, std::int64_t cores,
                                                 std::span<const std::int64_t> host_cores = {});
  /// The time of a whole step including the update.
  [[nodiscard]] double step_seconds(std::int64_t minibatches, std::int64_t cores,
                                    std::span<const std::int64_t> host_cores = {});

  [[nodiscard]] const ClusterModel& model() const { return model_; }

 private:
  // The compute time of a host whose first core has that rank in the cluster.
  [[nodiscard]] double compute_seconds(std::int64_t minibatches, std::int64_t cores,
                                       std::int64_t first_core) const;
  // The times at which each host has the sums of its subtrees, from left to right.
  [[nodiscard]] std::vector<std::vector<double>> subtree_ends(
      std::int64_t minibatches, std::int64_t cores, std::span<const std::int64_t> host_cores);

  ClusterModel model_;
  std::vector<double> weights_;
  // Results by the number of busy cores.
  std::map<std::int64_t, double> reduce_seconds_;
  // Results by minibatches, cores, and cores of hosts.
  std::map<std::tuple<std::int64_t, std::int64_t, std::vector<std::int64_t>>, ExchangeSeconds>
      exchange_seconds_;
};

}  // namespace rubato
