#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace rubato
