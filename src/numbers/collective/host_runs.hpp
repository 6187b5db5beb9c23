#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "summation_tree.hpp"

namespace rubato {

/// Where the leaves of a step are cut into a run for each host: host h has [borders[h],
/// borders[h + 1]), which may be empty. In proportion to the weights, at least 0 each and one above
/// it, as far as that leaves the runs few whole subtrees: borders are multiples of a power of two
/// of which a host has four at least, on the average, where there are so many leaves.
[[nodiscard]] std::vector<std::int64_t> host_borders(std::int64_t leaves,
                                                     std::span<const double> weights);

/// What is divided over the hosts.
struct StepSize {
  std::int64_t leaves = 1;
  /// Of all hosts, and of each (TraceStep::host_cores).
  std::int64_t cores = 1;
  std::span<const std::int64_t> host_cores{};
};

/// What each host has of a step.
struct HostShares {
  /// Host h has the leaves [leaf_borders[h], leaf_borders[h + 1]), which may be none, and the cores
  /// [core_borders[h], core_borders[h + 1]): they are numbered from host to host.
  std::vector<std::int64_t> leaf_borders;
  std::vector<std::int64_t> core_borders;

  /// With which it computes its leaves: one where it has none of the step's.
  [[nodiscard]] std::int64_t cores_of(std::size_t host) const;
};

/// Whether `host_cores` says how many cores each of the hosts has: of no more hosts than there are.
/// Those that it does not name have none.
[[nodiscard]] bool names_hosts(std::span<const std::int64_t> host_cores, std::size_t hosts);

/// What leaves are divided by: the hosts' weights, which are above 0 and of as many cores each;
/// times its cores where the step names them.
[[nodiscard]] std::vector<double> weights_in_step(std::vector<double> weights,
                                                  std::span<const std::int64_t> host_cores);

/// Divides a step over hosts of these weights, which are above 0. Where it names the hosts' cores,
/// each has these; otherwise they are divided as leaves are.
[[nodiscard]] HostShares shares_of_hosts(const StepSize& step, std::span<const double> weights);

/// The nodes whose leaves all lie in [begin, end), 0 <= begin <= end <= tree.leaves(), and whose
/// parents' do not, or the root: from left to right. Their leaves together are the run.
[[nodiscard]] std::vector<TreeNode> roots_within(const SummationTree& tree, std::int64_t begin,
                                                 std::int64_t end);

/// Adds what the roots of subtrees, which together have all leaves of the tree, come to, in the
/// order of the tree: calls merge(left, right) with the places of two nodes in `roots` (from left
/// to right), which is to add the right one's sum to the left one's. The sum is then the first
/// root's.
template <class Merge>
void sum_roots(const SummationTree& tree, std::span<const TreeNode> roots, const Merge& merge) {
  // By level, a node that waits for its sibling.
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
