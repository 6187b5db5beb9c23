#include "host_runs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace rubato {

namespace {

// The average number of granules in a host's run; runs are multiples of a granule.
constexpr std::int64_t kGranules = 4;

}  // namespace

std::vector<std::int64_t> host_borders(std::int64_t leaves, std::span<const double> weights) {
  const auto hosts = std::count_if(weights.begin(), weights.end(), [](double w) { return w > 0; });
  std::int64_t granule = 1;
  while (leaves / (2 * granule) >= kGranules * hosts) granule *= 2;
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> borders{0};
  double before = 0;
  for (const double weight : weights) {
    before += weight;
    const double granules =
        static_cast<double>(leaves) * (before / all) / static_cast<double>(granule);
    const std::int64_t border = granule * static_cast<std::int64_t>(std::llround(granules));
    // The last host with a weight gets the rest; `before` is the same sum as `all` there.
    borders.push_back(before == all ? leaves : std::min(leaves, border));
  }
  return borders;
}

std::int64_t HostShares::cores_of(std::size_t host) const {
  return std::max<std::int64_t>(1, core_borders[host + 1] - core_borders[host]);
}

bool names_hosts(std::span<const std::int64_t> host_cores, std::size_t hosts) {
  return !host_cores.empty() && host_cores.size() <= hosts;
}

std::vector<double> weights_in_step(std::vector<double> weights,
                                    std::span<const std::int64_t> host_cores) {
  if (!names_hosts(host_cores, weights.size())) return weights;
  for (std::size_t host = 0; host < weights.size(); ++host) {
    weights[host] *= host < host_cores.size() ? static_cast<double>(host_cores[host]) : 0.0;
  }
  return weights;
}

HostShares shares_of_hosts(const StepSize& step, std::span<const double> weights) {
  const std::vector<double> of_step =
      weights_in_step({weights.begin(), weights.end()}, step.host_cores);
  HostShares shares{.leaf_borders = host_borders(step.leaves, of_step), .core_borders = {0}};
  if (!names_hosts(step.host_cores, weights.size())) {
    shares.core_borders = host_borders(step.cores, of_step);
    return shares;
  }
  for (const std::int64_t cores : step.host_cores) {
    shares.core_borders.push_back(shares.core_borders.back() + cores);
  }
  shares.core_borders.resize(weights.size() + 1, shares.core_borders.back());
  return shares;
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
