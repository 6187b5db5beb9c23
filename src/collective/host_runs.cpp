#include "collective/host_runs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rubato {

namespace {

// Of the size of which runs are multiples, as many to a host.
constexpr std::int64_t kGranules = 4;

}  // namespace

std::vector<std::int64_t> host_borders(std::int64_t leaves, std::span<const double> weights) {
  const auto hosts = static_cast<std::int64_t>(weights.size());
  std::int64_t granule = 1;
  while (leaves / (2 * granule) >= kGranules * hosts) granule *= 2;
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> borders{0};
  double before = 0;
  for (const double weight : weights) {
    before += weight;
    const double granules =
        static_cast<double>(leaves) * (before / all) / static_cast<double>(granule);
    borders.push_back(
        std::min(leaves, granule * static_cast<std::int64_t>(std::llround(granules))));
  }
  borders.back() = leaves;
  return borders;
}

std::vector<TreeNode> roots_within(const SummationTree& tree, std::int64_t begin,
                                   std::int64_t end) {
  std::vector<TreeNode> roots;
  while (begin < end) {
    TreeNode node{0, begin};
    while (!tree.is_root(node) && tree.within(node.parent(), begin, end)) node = node.parent();
    roots.push_back(node);
    begin = tree.leaves_below(node).second;
  }
  return roots;
}

}  // namespace rubato
