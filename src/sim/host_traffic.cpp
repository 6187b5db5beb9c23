#include <rubato/sim/host_traffic.hpp>

#include "collective/host_runs.hpp"
#include "collective/summation_tree.hpp"

namespace rubato {

namespace {

// What HostSum sends of a sum besides its values: the loss and the number of minibatches.
constexpr std::int64_t kScalarBytes = 2 * sizeof(double);
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
  // The last host has what the others' equal parts leave.
  const std::int64_t part = values / hosts;
  const auto bytes_of_part = [&](std::int64_t host) {
    const std::int64_t of_part = host == hosts - 1 ? values - part * host : part;
    const std::int64_t bytes = of_part * value_bytes + kAlignment - 1;
    return bytes / kAlignment * kAlignment + kScalarBytes;
  };
  const std::int64_t all_parts = (hosts - 1) * bytes_of_part(0) + bytes_of_part(hosts - 1);
  for (std::int64_t host = 0; host < hosts; ++host) {
    HostTraffic& of = traffic[static_cast<std::size_t>(host)];
    const std::int64_t own = bytes_of_part(host);
    of.sums_sent = of.roots * (all_parts - own);
    of.sums_received = (all_roots - of.roots) * own;
    of.parts_sent = (hosts - 1) * own;
    of.parts_received = all_parts - own;
  }
  return traffic;
}

}  // namespace rubato
