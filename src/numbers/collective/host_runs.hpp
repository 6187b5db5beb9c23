#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summation_tree.hpp"

namespace rubato {

/// The borders of the hosts' runs of leaves: host h has [borders[h], borders[h + 1]), which may be
/// empty. Runs are in proportion to the weights (each at least 0, one of them above 0), rounded to
/// multiples of a power of two so that runs consist of few whole subtrees; the average host has at
/// least four such multiples, if there are enough leaves.
[[nodiscard]] std::vector<std::int64_t> host_borders(std::int64_t leaves,
                                                     std::span<const double> weights);

/// The leaves and cores of a step that are divided over the hosts.
struct StepSize {
  std::int64_t leaves = 1;
  /// Cores of all hosts, and of each (TraceStep::host_cores).
  std::int64_t cores = 1;
  std::span<const std::int64_t> host_cores{};
};

/// The shares of the hosts in a step.
struct HostShares {
  /// Host h has the leaves [leaf_borders[h], leaf_borders[h + 1]), which may be empty, and the
  /// cores [core_borders[h], core_borders[h + 1]); cores are numbered across the hosts.
  std::vector<std::int64_t> leaf_borders;
  std::vector<std::int64_t> core_borders;

  /// The number of cores with which a host computes its leaves; 1 if the step gives it none.
  [[nodiscard]] std::int64_t cores_of(std::size_t host) const;
};

/// True if `host_cores` gives the cores of the hosts: it is not empty and no longer than `hosts`.
/// Hosts beyond its end have none.
[[nodiscard]] bool names_hosts(std::span<const std::int64_t> host_cores, std::size_t hosts);

/// The weights by which leaves are divided: `weights`, which are above 0 and count per core, times
/// the host's cores if the step names them.
[[nodiscard]] std::vector<double> weights_in_step(std::vector<double> weights,
                                                  std::span<const std::int64_t> host_cores);

/// Divides a step over hosts of these weights, which are above 0. Cores are those that the step
/// names, or else divided as leaves are.
[[nodiscard]] HostShares shares_of_hosts(const StepSize& step, std::span<const double> weights);

/// The largest nodes whose leaves all lie in [begin, end), from left to right; together their
/// leaves are the run. Requires 0 <= begin <= end <= tree.leaves().
[[nodiscard]] std::vector<TreeNode> roots_within(const SummationTree& tree, std::int64_t begin,
                                                 std::int64_t end);

/// Adds the sums of the roots of subtrees that together have all leaves of the tree, in the order
/// of the tree. Calls merge(left, right) with the indices of two nodes in `roots` (which are from
/// left to right), which must add the right one's sum to the left one's. The first root then has
/// the total.
template <class Merge>
void sum_roots(const SummationTree& tree, std::span<const TreeNode> roots, const Merge& merge) {
  // For each level, the node that waits for its sibling.
  std::vector<std::size_t> pending(static_cast<std::size_t>(tree.height()) + 1);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    std::size_t place = i;
    for (TreeNode node = roots[i]; !tree.is_root(node); node = node.parent()) {
      if (!tree.contains(node.sibling())) continue;
      std::size_t& left = pending[static_cast<std::size_t>(node.level)];
      if (node.index % 2 == 0) {
        left = place;
        break;
      }
      merge(left, place);
      place = left;
    }
  }
}

}  // namespace rubato
