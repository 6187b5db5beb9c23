#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rubato/core/index.hpp>

namespace rubato {

/// A random permutation of 0, ..., n - 1, the same as torch.randperm(n) after
/// torch.manual_seed(seed): a Fisher-Yates shuffle from the front, driven by MT19937.
/// Requires 0 <= n < 2^32.
[[nodiscard]] std::vector<std::int64_t> random_permutation(std::int64_t n, std::uint64_t seed);

/// The samples of one epoch in their shuffled order, cut into minibatches.
class EpochSamples {
 public:
  /// Shuffles with `seed` + epoch.
  EpochSamples(std::int64_t dataset_size, std::int64_t minibatch_size, std::uint64_t seed,
               EpochIndex epoch);

  /// The sample indices of a minibatch, in the order in which the minibatch holds them.
  [[nodiscard]] std::span<const std::int64_t> minibatch(MinibatchIndex minibatch) const;

 private:
  std::vector<std::int64_t> samples_;
  std::int64_t minibatch_size_;
};

}  // namespace rubato
