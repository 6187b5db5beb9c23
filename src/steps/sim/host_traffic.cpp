#include <rubato/steps/cluster_model.hpp>

#include "numbers/collective/host_runs.hpp"
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

}  // namespace rubato
