#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/step_plan.hpp>

namespace rubato {

/// What a stream of random numbers belongs to: never a thread or a core, so that the numbers are
/// the same whoever draws them.
struct StreamKey {
  std::uint64_t seed = 0;
  /// In which the step begins.
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  /// Within that epoch, counted on where the step goes on beyond it.
  std::int64_t minibatch = 0;
};

/// Independent random numbers of a key, standard normal or uniform: the n-th is a function of the
/// key and n, whoever draws it and in whatever order, so threads may divide the draws as they like.
/// The normal numbers of a key are made from its uniform ones; use two keys if you need both.
class NormalNumbers {
 public:
  explicit NormalNumbers(const StreamKey& key);

  /// The n-th pair of standard normal numbers, by Box and Muller (1958) from two numbers of
  /// SplitMix64.
  [[nodiscard]] std::array<double, 2> pair(std::uint64_t n) const;
  /// The n-th standard normal number: the pairs one after the other. Drawing one costs as much as
  /// drawing its pair.
  [[nodiscard]] double operator[](std::uint64_t n) const { return pair(n / 2)[n % 2]; }
  /// The n-th number that is uniform in [0, 1): a multiple of 2^-53.
  [[nodiscard]] double uniform(std::uint64_t n) const;

 private:
  std::uint64_t seed_;
};

/// What the order of an epoch's samples is made for.
struct EpochDraw {
  EpochIndex epoch{};
  /// TrainOptions::seed.
  std::uint64_t seed = 0;
  /// In the training data.
  std::int64_t samples = 0;
};

/// Which samples an epoch uses, and in what order, as a value. An empty TrainOptions::sampler
/// shuffles (random_permutation() with seed + epoch).
struct Sampler {
  /// Names the sampler in messages and binds a state: samplers with the same name are taken to be
  /// the same, so the name has to say everything that changes the lists. One line.
  std::string name{};
  /// As many indices as there are samples, each from 0 to samples - 1; some may occur several times
  /// and others never. A function of its argument and of nothing else: it is called again after a
  /// resume, and before the first epoch. Called by the training thread, usually once for an epoch.
  /// An exception ends training before the step, with the state before it.
  ///
  /// Minibatches are consecutive pieces of the list. With Remainder::drop what fills no step at
  /// its end is not shown. With Remainder::carry every entry of every epoch's list is shown exactly
  /// once, and the next list goes on where it ends: n epochs show a sample as often as it is in n
  /// lists, n times where these are permutations.
  std::function<std::vector<std::int64_t>(const EpochDraw& draw)> order{};

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(order); }
};

/// 0, 1, 2, ... in every epoch: no shuffling, for data that are shuffled already or whose order
/// matters.
[[nodiscard]] Sampler in_order();

/// Draws with replacement: sample i is drawn with a probability in proportion to weights[i], each
/// draw independent of the others, as torch's WeightedRandomSampler does (with other random
/// numbers). So rare classes can be shown as often as common ones. Throws Error unless the weights
/// are finite, at least 0 and not all 0; training does where there are not as many as samples. Its
/// name has a digest of the weights.
[[nodiscard]] Sampler weighted(const std::vector<double>& weights);

/// Samplers of the user's own, by name.
using OwnSamplers = Additions<Sampler>;
/// The sampler that `text` asks for, "shuffle", which is an empty one, "in-order", or one of the
/// user's own. Throws Error for another name, with the nearest, and for arguments that it does not
/// take.
[[nodiscard]] Sampler make_sampler(std::string_view text, const OwnSamplers& own);
/// The built-in names, and the same with what they do.
[[nodiscard]] std::vector<std::string_view> sampler_names();
[[nodiscard]] std::vector<Strategy> samplers();

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
