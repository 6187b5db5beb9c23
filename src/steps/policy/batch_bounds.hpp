#pragma once

#include <cstdint>
#include <optional>

#include <rubato/steps/trace.hpp>

namespace rubato {

/// Between which batches a policy decides, in minibatches.
class BatchBounds {
 public:
  /// From samples: the multiples of the minibatch from `least` to `most`. Throws Error where there
  /// are none.
  BatchBounds(std::int64_t least, std::int64_t most, std::int64_t minibatch_size);

  [[nodiscard]] std::int64_t least() const { return least_; }
  [[nodiscard]] std::int64_t most() const { return most_; }
  [[nodiscard]] std::int64_t minibatch_size() const { return minibatch_size_; }
  /// Samples of the largest batch.
  [[nodiscard]] std::int64_t max_batch() const { return most_ * minibatch_size_; }

  /// The minibatches of the nearest batch, of at least 0 samples.
  [[nodiscard]] std::int64_t nearest(double samples) const;
  /// The step of so many minibatches on as many of the cores that are offered as have one.
  [[nodiscard]] TraceStep step_of(std::int64_t minibatches,
                                  std::optional<std::int64_t> cores) const;

 private:
  std::int64_t least_;
  std::int64_t most_;
  std::int64_t minibatch_size_;
};

}  // namespace rubato
