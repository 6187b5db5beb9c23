#include "throughput_model.hpp"

#include <algorithm>
#include <cmath>

#include "base/core/numbers/functions.hpp"

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
  // The power is of the ratio of the smaller to the larger, which is in range for every gamma.
  const double larger = std::max(gradient, sync);
  return larger * exact::pow(1 + exact::pow(std::min(gradient, sync) / larger, gamma), 1 / gamma);
}

void ThroughputModel::visit_state(NumberVisitor& numbers) {
  for (double* const number : {&gradient_base, &gradient_slope, &host_base, &host_slope,
                               &network_base, &network_slope, &gamma}) {
    numbers.number(*number);
    numbers.require(std::isfinite(*number) && *number >= 0);
  }
  numbers.require(gradient_slope > 0 && gamma >= 1);
}

}  // namespace rubato
