#pragma once

#include <cstdint>
#include <map>

#include "throughput_model.hpp"

namespace rubato {

/// Mean seconds of the steps of each shape, each above 0.
using StepSeconds = std::map<StepShape, double>;

/// The model whose logarithms of seconds have the smallest sum of squared distances to those of
/// `observed`, which must not be empty (Qiao et al. 2021, section 4.1), by the method of Levenberg
/// and Marquardt.
///
/// Unexplored configurations cost nothing, so that exploring them looks good: as in Pollux, the
/// terms of cores of one host, and of several, are 0 until there have been such steps. A slope is 0
/// until there have been two numbers of cores, or of minibatches, to distinguish it from its base.
/// A time that could belong to the gradient or to the sum belongs to the gradient.
///
/// A pure function: the same bits on any number of threads.
[[nodiscard]] ThroughputModel fit_throughput(const StepSeconds& observed,
                                             std::int64_t cores_per_host);

/// The root of the mean squared difference of logarithms: 0.1 is ten percent.
[[nodiscard]] double fit_error(const ThroughputModel& model, const StepSeconds& observed,
                               std::int64_t cores_per_host);

}  // namespace rubato
