#include "policy/throughput_model.hpp"

#include <algorithm>
#include <cmath>

#include <rubato/core/error.hpp>

namespace rubato {

StepShape StepShape::of(std::int64_t minibatches, std::int64_t cores) {
  return {.cores = std::min(minibatches, cores), .minibatches = (minibatches + cores - 1) / cores};
}

double ThroughputModel::seconds(const StepShape& shape, std::int64_t cores_per_host) const {
  const double gradient = gradient_base + gradient_slope * static_cast<double>(shape.minibatches);
  if (shape.cores <= 1) return gradient;
  const auto more = static_cast<double>(shape.cores - 2);
  const double sync = shape.cores <= cores_per_host ? host_base + host_slope * more
                                                    : network_base + network_slope * more;
  // A power of the ratio of the smaller to the larger, which is in range whatever gamma is.
  const double larger = std::max(gradient, sync);
  return larger * std::pow(1 + std::pow(std::min(gradient, sync) / larger, gamma), 1 / gamma);
}

std::array<double, 7> ThroughputModel::state() const {
  return {gradient_base, gradient_slope, host_base, host_slope, network_base, network_slope, gamma};
}

ThroughputModel ThroughputModel::of_state(const std::array<double, 7>& state) {
  const bool good = std::ranges::all_of(
      state, [](double number) { return std::isfinite(number) && number >= 0; });
  if (!good || !(state[1] > 0) || state[6] < 1) {
    throw Error("the state is damaged: the model of the time of steps");
  }
  return {.gradient_base = state[0],
          .gradient_slope = state[1],
          .host_base = state[2],
          .host_slope = state[3],
          .network_base = state[4],
          .network_slope = state[5],
          .gamma = state[6]};
}

}  // namespace rubato
