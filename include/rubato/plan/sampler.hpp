#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/family.hpp>
#include <rubato/core/index.hpp>

namespace rubato {

/// What the order of an epoch's samples is made for.
struct EpochDraw {
  EpochIndex epoch{};
  /// TrainOptions::seed.
  std::uint64_t seed = 0;
  /// In the training data.
  std::int64_t samples = 0;
};

/// Which samples an epoch shows, and in what order, as a value: without one, TrainOptions::sampler
/// shuffles (random_permutation() with seed + epoch).
struct Sampler {
  /// Names it in messages, and binds a state: samplers of one name are taken for the same, so that
  /// whatever changes its lists belongs into it. One line.
  std::string name{};
  /// As many indices as there are samples, each from 0 to samples - 1; one may be there several
  /// times and another one never. A function of its argument and of nothing else: it is asked again
  /// after a resume, and before the first epoch. Called by the thread that trains, once for an
  /// epoch as a rule. What it throws ends training before the step, whose state is then there.
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

}  // namespace rubato
