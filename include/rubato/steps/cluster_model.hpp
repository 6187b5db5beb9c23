#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <rubato/base/index.hpp>

namespace rubato {

/// What goes through the network interface of one of several hosts in a step (docs/hosts.md), as
/// bytes of messages: what a network adds to a message is not in it.
///
/// With S bytes of values, h hosts and r subtrees of its own, a host sends S (h - 1) / h bytes for
/// each subtree, and as much again for the part that it has added:
///
///     sent = (r + 1) S (h - 1) / h        2 S (h - 1) / h where it has one subtree
///
/// What it receives is its part, S / h, of the others' subtrees, and the parts of the others. To a
/// part of a subtree's sum come 16 bytes for the loss and the number of minibatches, and what makes
/// its length a multiple of 8.
struct HostTraffic {
  /// Subtrees of the summation tree whose sums it computes; none where it has no minibatches.
  std::int64_t roots = 0;
  /// Of the subtrees' sums, which it gives to the others and is given by them.
  std::int64_t sums_sent = 0;
  std::int64_t sums_received = 0;
  /// Of the parts that each host has added.
  std::int64_t parts_sent = 0;
  std::int64_t parts_received = 0;

  [[nodiscard]] std::int64_t sent() const { return sums_sent + parts_sent; }
  [[nodiscard]] std::int64_t received() const { return sums_received + parts_received; }
  friend bool operator==(const HostTraffic&, const HostTraffic&) = default;
};

/// Of each host, in a step of `minibatches`, at least 1, shared out by the weights of the hosts,
/// which are at least 0 and one of them above it. `values` are what is summed for a minibatch: its
/// gradient, and what a model averages besides. Left out is what a training may send along: norms
/// of the gradient (8 bytes for each of their blocks) and counters.
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

/// The machines that a run is imagined on, and what they cost.
struct ClusterModel {
  /// Seconds that a core takes for a minibatch, forward and backward; above 0.
  double substep_seconds = 0.01;
  /// Cores that are slower, each at most once; factors of at least 1.
  std::vector<SlowCore> slow_cores{};

  /// How the cores' gradients come together: what make_all_reduce() takes.
  std::string algorithm = "ring";
  /// Of a core's gradient; at least 0.
  std::int64_t gradient_bytes = 0;
  /// Cores of a host, at least 1.
  std::int64_t cores_per_host = 8;
  /// Of a message between two cores of a host, and between hosts: seconds however short it is, and
  /// bytes in a second. Latencies are at least 0, bandwidths above 0.
  double latency_within_host = 0;
  double bandwidth_within_host = 1e11;
  double latency_between_hosts = 0;
  double bandwidth_between_hosts = 1e9;

  /// Hosts that train the run together as `rubato train --hosts` does (docs/hosts.md), from 1 to
  /// kMostModelledHosts. With several, each has its share of the minibatches and of the cores, the
  /// cores of each are all reached within it, and its network interface has the latency and the
  /// bandwidth between hosts.
  std::int64_t hosts = 1;
  /// How much of a step each of them computes, relative to the others, above 0; empty is the same.
  std::vector<double> host_weights{};
  /// Bytes in a second that a host puts into messages or adds; above 0.
  double memory_bandwidth = 5e9;

  /// Seconds between the sum and the next step; at least 0.
  double update_seconds = 0;
  /// After every so many steps (0 is never), so many seconds for a checkpoint.
  std::int64_t checkpoint_steps = 0;
  double checkpoint_seconds = 0;
  /// Seconds from the loss of a core until the cores left begin the step again; at least 0.
  double restart_seconds = 0;

  /// Of a core for an hour, in whatever money; at least 0.
  double price = 0;

  friend bool operator==(const ClusterModel&, const ClusterModel&) = default;
};

inline constexpr std::int64_t kMostModelledHosts = 1024;

/// Throws Error for a value out of its range.
void require_valid(const ClusterModel& model);

/// ClusterModel::gradient_bytes of text that does not say them, until the model is known.
inline constexpr std::int64_t kBytesOfModel = -1;

/// "substep=0.01,latency=1e-4,bandwidth=1e9,...": the arguments of a model, without a name.
/// cluster_arguments() has them. A gradient has `gradient_bytes`, unless they say so. Throws Error.
[[nodiscard]] ClusterModel parse_cluster(std::string_view text, std::int64_t gradient_bytes = 0);

struct Argument;  // base/spec.hpp
[[nodiscard]] std::vector<Argument> cluster_arguments();

/// Of each host; all 1 where the model does not say. In a step that says how many cores each has
/// (TraceStep::host_cores), of no more hosts than there are: times these cores.
[[nodiscard]] std::vector<double> host_weights_of(const ClusterModel& model,
                                                  std::span<const std::int64_t> host_cores = {});

/// What a step of several hosts takes between its minibatches and its update.
struct ExchangeSeconds {
  /// From the end of the slowest host's minibatches until each has its part of all subtrees' sums:
  /// those of the first subtrees are sent while the others are computed.
  double sums = 0;
  /// Adding this part.
  double memory = 0;
  /// Until all hosts have all parts of the result.
  double parts = 0;

  [[nodiscard]] double all() const { return sums + memory + parts; }
};

/// What steps take on a cluster: pure functions of the model.
class StepTimes {
 public:
  /// Throws Error as require_valid() does.
  explicit StepTimes(ClusterModel model);

  /// The slowest core's minibatches, where `cores` of one host share out `minibatches` evenly, the
  /// first of them one more.
  [[nodiscard]] double compute_seconds(std::int64_t minibatches, std::int64_t cores) const;
  /// Until the gradients of `busy` cores are one sum at each of them: cost_of() the algorithm's
  /// schedule, 0 for one core. Of a ring, whose phases are as many as twice the cores, each counts
  /// as the largest part of the values on the slowest of its links.
  [[nodiscard]] double reduce_seconds(std::int64_t busy);
  /// Of several hosts: the slowest one's own part. It computes and reduces its subtrees one after
  /// the other, each on all of its cores, which are numbered from host to host. `host_cores` is as
  /// TraceStep has it, here and below.
  [[nodiscard]] double host_seconds(std::int64_t minibatches, std::int64_t cores,
                                    std::span<const std::int64_t> host_cores = {});
  /// What several hosts exchange: 0 for one. When a subtree is summed its sum goes into messages,
  /// which a host sends one after the other, and receives meanwhile. A message is not sent before
  /// its receiver has said that it is waited for: what all hosts say when a step begins.
  [[nodiscard]] ExchangeSeconds exchange_seconds(std::int64_t minibatches, std::int64_t cores,
                                                 std::span<const std::int64_t> host_cores = {});
  /// All of a step, and the update.
  [[nodiscard]] double step_seconds(std::int64_t minibatches, std::int64_t cores,
                                    std::span<const std::int64_t> host_cores = {});

  [[nodiscard]] const ClusterModel& model() const { return model_; }

 private:
  // Of a host whose first core has that rank in the cluster.
  [[nodiscard]] double compute_seconds(std::int64_t minibatches, std::int64_t cores,
                                       std::int64_t first_core) const;
  // When each host has the sum of each of its subtrees, from left to right.
  [[nodiscard]] std::vector<std::vector<double>> subtree_ends(
      std::int64_t minibatches, std::int64_t cores, std::span<const std::int64_t> host_cores);

  ClusterModel model_;
  std::vector<double> weights_;
  // By the number of busy cores.
  std::map<std::int64_t, double> reduce_seconds_;
  // By minibatches, cores, and those of hosts.
  std::map<std::tuple<std::int64_t, std::int64_t, std::vector<std::int64_t>>, ExchangeSeconds>
      exchange_seconds_;
};

}  // namespace rubato
