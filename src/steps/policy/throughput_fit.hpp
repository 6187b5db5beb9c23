#pragma once

#include <cstdint>
#include <map>

#include "throughput_model.hpp"

namespace rubato {

/// Seconds of the steps of each shape, each a mean above 0.
using StepSeconds = std::map<StepShape, double>;

/// The model whose logarithms of seconds are nearest to those of `observed`, which is not empty, in
/// the sum of squares (Qiao et al. 2021, section 4.1), by the method of Levenberg and Marquardt.
///
/// What has not been explored costs nothing, so that exploring it looks good: as in Pollux the
/// terms of cores of a host, and of several, are 0 while there have been none. A slope is 0 while
/// there have not been two numbers of cores, or of minibatches, to tell it from its base. Where a
/// time can be of the gradient or of the sum, it is of the gradient.
///
/// A function of its arguments: the same bits on every number of threads.
[[nodiscard]] ThroughputModel fit_throughput(const StepSeconds& observed,
                                             std::int64_t cores_per_host);

/// The root of the mean of the squared differences of logarithms: 0.1 is ten percent.
[[nodiscard]] double fit_error(const ThroughputModel& model, const StepSeconds& observed,
                               std::int64_t cores_per_host);

}  // namespace rubato
