#pragma once

#include <cstdint>
#include <optional>

#include <rubato/steps/trace.hpp>

namespace rubato {

/// The bounds of the batches that a policy decides on, in minibatches.
class BatchBounds {
 public:
  /// Creates bounds from samples: the multiples of the minibatch from `least` to `most`. Throws
  /// Error if there are none.
  BatchBounds(std::int64_t least, std::int64_t most, std::int64_t minibatch_size);

  [[nodiscard]] std::int64_t least() const { return least_; }
  [[nodiscard]] std::int64_t most() const { return most_; }
  [[nodiscard]] std::int64_t minibatch_size() const { return minibatch_size_; }
  /// Samples of the largest batch.
  [[nodiscard]] std::int64_t max_batch() const { return most_ * minibatch_size_; }

  /// The batch nearest to a number of samples, at least 0, in minibatches.
  [[nodiscard]] std::int64_t nearest(double samples) const;
  /// The step of `minibatches` minibatches on the offered cores, or as many as have a minibatch.
  [[nodiscard]] TraceStep step_of(std::int64_t minibatches,
                                  std::optional<std::int64_t> cores) const;

 private:
  std::int64_t least_;
  std::int64_t most_;
  std::int64_t minibatch_size_;
};

}  // namespace rubato
