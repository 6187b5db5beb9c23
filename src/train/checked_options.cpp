#include "checked_options.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/runtime/reducer.hpp>

namespace rubato {

TrainOptions checked_options(TrainOptions options) {
  if (options.epochs < 1) {
    throw Error(fmt::format("{} epochs: at least 1 is needed", options.epochs));
  }
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    throw Error(
        fmt::format("learning rate {}: accepted are values above 0", options.learning_rate));
  }
  if (options.iterations && !(*options.iterations > 0)) {
    throw Error(fmt::format("{} iterations: accepted are values above 0", *options.iterations));
  }
  if (options.clip_norm && !(*options.clip_norm > 0)) {
    throw Error(
        fmt::format("clipping to norm {}: accepted are values above 0", *options.clip_norm));
  }
  if (options.top_k < 0) {
    throw Error(fmt::format("top {} accuracy: at least 1 is needed (0 is none)", options.top_k));
  }
  if (options.exact) require_exact(options.reduce);
  if (options.reference_batch_size < 1) {
    throw Error(
        fmt::format("reference batch size {}: at least 1 is needed", options.reference_batch_size));
  }
  if (options.threads < 0) {
    throw Error(fmt::format("{} threads: at least 1 is needed (0 takes all)", options.threads));
  }
  if (options.threads == 0) {
    options.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  return options;
}

}  // namespace rubato
