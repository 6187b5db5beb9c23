#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rubato/core/index.hpp>
#include <rubato/plan/sampler.hpp>
#include <rubato/plan/step_plan.hpp>

namespace rubato {

/// The largest data set that can be shuffled. From here on torch.randperm draws its numbers in
/// another way (so that their remainders stay close to uniform).
inline constexpr std::int64_t kMaxDatasetSize = 0xFFFF'FFFF / 20 - 1;

/// A random permutation of 0, ..., n - 1, the same as torch.randperm(n) after
/// torch.manual_seed(seed): a Fisher-Yates shuffle from the front, driven by MT19937
/// (which takes the lower 32 bits of the seed). Requires 0 <= n <= kMaxDatasetSize.
[[nodiscard]] std::vector<std::int64_t> random_permutation(std::int64_t n, std::uint64_t seed);

/// The samples of one epoch in their shuffled order, cut into minibatches.
class EpochSamples {
 public:
  /// Shuffles with `seed` + epoch. Requires 1 <= minibatch_size and
  /// 0 <= dataset_size <= kMaxDatasetSize.
  EpochSamples(std::int64_t dataset_size, std::int64_t minibatch_size, std::uint64_t seed,
               EpochIndex epoch);

  /// The sample indices of a minibatch, in the order in which the minibatch holds them.
  /// Requires 0 <= minibatch < floor(dataset size / minibatch size).
  [[nodiscard]] std::span<const std::int64_t> minibatch(MinibatchIndex minibatch) const;

 private:
  std::vector<std::int64_t> samples_;
  std::int64_t minibatch_size_;
};

/// The samples of the epochs that a step takes part in, one epoch's order behind the other: a
/// minibatch that begins in one epoch goes on in the next. An epoch's order is the sampler's, and
/// that of EpochSamples where there is none.
class SampleOrder {
 public:
  /// Requires 1 <= minibatch_size and minibatch_size <= dataset_size <= kMaxDatasetSize.
  /// Throws Error where the sampler's list for epoch 0 is not what Sampler::order promises.
  SampleOrder(std::int64_t dataset_size, std::int64_t minibatch_size, std::uint64_t seed,
              Sampler sampler = {});

  /// For a step that begins in `epoch`. Throws Error where one of the sampler's lists is not what
  /// it promises, and whatever it throws.
  void prepare(EpochIndex epoch, const StepPlan& step);
  /// The sample indices of a minibatch of that step, in the order in which the minibatch holds
  /// them: good until prepare() is called again. Any number of threads may ask at once.
  [[nodiscard]] std::span<const std::int64_t> minibatch(const StepPlan& step,
                                                        MinibatchIndex minibatch) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> order_of(EpochIndex epoch) const;

  std::int64_t dataset_size_;
  std::int64_t minibatch_size_;
  std::uint64_t seed_;
  Sampler sampler_;
  // Whose order comes first.
  EpochIndex first_;
  std::vector<std::int64_t> samples_;
};

}  // namespace rubato
