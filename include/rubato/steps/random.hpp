#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/step_plan.hpp>

namespace rubato {

/// Identifies a stream of random numbers. It never contains a thread or a core, so that the numbers
/// do not depend on which of them draws.
struct StreamKey {
  std::uint64_t seed = 0;
  /// The epoch in which the step begins.
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  /// The minibatch within that epoch; counting continues if the step extends beyond it.
  std::int64_t minibatch = 0;
};

/// Independent random numbers for a key, standard normal or uniform. The n-th is a function of the
/// key and n alone, so threads may draw them in any order. The normal numbers of a key are made
/// from its uniform ones; use two keys if you need both.
class NormalNumbers {
 public:
  explicit NormalNumbers(const StreamKey& key);

  /// The n-th pair of standard normal numbers, by Box and Muller (1958) from two numbers of
  /// SplitMix64.
  [[nodiscard]] std::array<double, 2> pair(std::uint64_t n) const;
  /// The n-th standard normal number, counting through the pairs. Drawing one costs as much as
  /// drawing its pair.
  [[nodiscard]] double operator[](std::uint64_t n) const { return pair(n / 2)[n % 2]; }
  /// The n-th number, uniform in [0, 1): a multiple of 2^-53.
  [[nodiscard]] double uniform(std::uint64_t n) const;

 private:
  std::uint64_t seed_;
};

/// The arguments that determine the order of an epoch's samples.
struct EpochDraw {
  EpochIndex epoch{};
  /// TrainOptions::seed.
  std::uint64_t seed = 0;
  /// Samples in the training data.
  std::int64_t samples = 0;
};

/// Weights that belong to the data of a run. If neither member is set, each sample of a class
/// weighs the inverse of their number, so that an epoch shows all classes equally often on average.
struct SampleWeights {
  /// The name of a table's column, or of an array in a file of tensors; empty for none.
  std::string column{};
  /// A weight for each training sample, those that are held out included; null for none.
  std::shared_ptr<const std::vector<double>> rows{};

  /// Equal weights have the same column and the same object `rows`; values are not compared.
  friend bool operator==(const SampleWeights&, const SampleWeights&) = default;
};

/// Chooses the samples of an epoch and their order; a value type. An empty TrainOptions::sampler
/// shuffles (random_permutation() with seed + epoch).
struct Sampler {
  /// The name in messages, to which a state is bound. Samplers of the same name are assumed to be
  /// the same, so it must say everything that changes the lists. One line.
  std::string name{};
  /// Returns as many indices as there are samples, each from 0 to samples - 1; some may occur
  /// several times and others never. It must depend on its argument alone: it is called again after
  /// a resume, and before the first epoch. It is called by the training thread, usually once for an
  /// epoch. An exception ends training before the step, with the state before it.
  ///
  /// Minibatches are consecutive pieces of the list. With Remainder::drop, entries at its end that
  /// fill no step are not shown. With Remainder::carry every entry of every epoch's list is shown
  /// exactly once, and the next list follows without a gap: n epochs show a sample as often as it
  /// occurs in n lists, n times if these are permutations.
  std::function<std::vector<std::int64_t>(const EpochDraw& draw)> order{};
  /// Set by weighted_in_data(), and kept by the sampler that a run makes of it.
  std::optional<SampleWeights> weights{};

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(order); }
};

/// A sampler that returns 0, 1, 2, ... in every epoch, without shuffling: for data that are
/// shuffled already or whose order matters.
[[nodiscard]] Sampler in_order();

/// A sampler that draws with replacement, sample i with a probability in proportion to weights[i],
/// as torch's WeightedRandomSampler does (with other random numbers). It can show rare classes as
/// often as common ones. Throws Error unless the weights are finite, at least 0 and not all 0;
/// training throws unless there are as many as samples. Its name contains a digest of the weights.
[[nodiscard]] Sampler weighted(const std::vector<double>& weights);

/// The sampler that a run replaces by weighted(), once it has read its data. Until then its order
/// throws Error, as only the data have the weights.
[[nodiscard]] Sampler weighted_in_data(std::string name, SampleWeights weights);

/// Samplers that users add, by name.
using OwnSamplers = Additions<Sampler>;
/// The sampler that `text` asks for: "shuffle", which is an empty one, "in-order", "weighted:..."
/// of weights in the data, or a user's. Throws Error for another name, with the nearest, and for
/// arguments that it does not take.
[[nodiscard]] Sampler make_sampler(std::string_view text, const OwnSamplers& own);
/// The names of the built-in samplers, and the samplers with their descriptions.
[[nodiscard]] std::vector<std::string_view> sampler_names();
[[nodiscard]] std::vector<Strategy> samplers();

/// The largest data set that can be shuffled. For larger ones torch.randperm draws its numbers in
/// another way (so that their remainders stay close to uniform).
inline constexpr std::int64_t kMaxDatasetSize = 0xFFFF'FFFF / 20 - 1;

/// A random permutation of 0, ..., n - 1, the same as torch.randperm(n) after
/// torch.manual_seed(seed): a Fisher-Yates shuffle from the front, driven by MT19937
/// (which takes the lower 32 bits of the seed). Requires 0 <= n <= kMaxDatasetSize.
[[nodiscard]] std::vector<std::int64_t> random_permutation(std::int64_t n, std::uint64_t seed);

/// The samples of one epoch in their shuffled order, divided into minibatches.
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

/// The samples of the epochs that a step takes part in, one epoch's order after the other: a
/// minibatch that begins in one epoch may continue in the next. The order of an epoch is the
/// sampler's, or that of EpochSamples without one.
class SampleOrder {
 public:
  /// Requires 1 <= minibatch_size <= dataset_size <= kMaxDatasetSize. Throws Error if the sampler's
  /// list for epoch 0 breaks the promise of Sampler::order.
  SampleOrder(std::int64_t dataset_size, std::int64_t minibatch_size, std::uint64_t seed,
              Sampler sampler = {});

  /// Prepares for a step that begins in `epoch`. Throws Error if one of the sampler's lists breaks
  /// its promise, and whatever the sampler throws.
  void prepare(EpochIndex epoch, const StepPlan& step);
  /// The sample indices of a minibatch of that step, in the order in which the minibatch holds
  /// them: valid until the next prepare(). Any number of threads may call it at once.
  [[nodiscard]] std::span<const std::int64_t> minibatch(const StepPlan& step,
                                                        MinibatchIndex minibatch) const;

 private:
  [[nodiscard]] std::vector<std::int64_t> order_of(EpochIndex epoch) const;

  std::int64_t dataset_size_;
  std::int64_t minibatch_size_;
  std::uint64_t seed_;
  Sampler sampler_;
  // The epoch whose order comes first in samples_.
  EpochIndex first_;
  std::vector<std::int64_t> samples_;
};

}  // namespace rubato
