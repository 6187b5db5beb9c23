#include "batch_bounds.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato {

BatchBounds::BatchBounds(std::int64_t least, std::int64_t most, std::int64_t minibatch_size)
    : least_((least + minibatch_size - 1) / minibatch_size),
      most_(most / minibatch_size),
      minibatch_size_(minibatch_size) {
  if (least_ <= most_) return;
  throw Error(
      fmt::format("no multiple of the minibatch size, {}, is from min={} to max={}; accepted: "
                  "bounds that have one between them",
                  minibatch_size, least, most));
}

std::int64_t BatchBounds::nearest(double samples) const {
  const double minibatches = samples / static_cast<double>(minibatch_size_);
  // The comparison comes before the rounding, which cannot represent numbers beyond 64 bits.
  if (minibatches >= static_cast<double>(most_)) return most_;
  return std::clamp<std::int64_t>(std::llround(minibatches), least_, most_);
}

TraceStep BatchBounds::step_of(std::int64_t minibatches, std::optional<std::int64_t> cores) const {
  TraceStep step{.batch_size = minibatches * minibatch_size_};
  if (cores) step.cores = std::min(*cores, minibatches);
  return step;
}

}  // namespace rubato
