#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <rubato/loop/eigen.hpp>
#include <rubato/testing.hpp>

#include "loop/data/images/digits.hpp"
#include "support/random_values.hpp"

namespace rubato::test {

/// Random rows; the classes follow each other.
template <class T>
DenseDataset<T> random_classes(std::int64_t samples, std::int64_t features, std::int64_t classes,
                               std::uint32_t seed = 1) {
  std::vector<std::int64_t> targets(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i] = static_cast<std::int64_t>(i) % classes;
  }
  return DenseDataset<T>::classified(
      random_values<T>(static_cast<std::size_t>(samples * features), seed), std::move(targets),
      classes);
}

/// Random rows and targets.
template <class T>
DenseDataset<T> random_targets(std::int64_t samples, std::int64_t features, std::int64_t outputs,
                               std::uint32_t seed = 1) {
  return DenseDataset<T>::with_targets(
      random_values<T>(static_cast<std::size_t>(samples * features), seed),
      random_values<T>(static_cast<std::size_t>(samples * outputs), seed + 1), outputs);
}

/// The first `count` of the built-in digits, normalised.
inline DenseDataset<float> digits(std::int64_t count, std::uint64_t seed = 1) {
  const ImageSet images = render_digits(count, seed);
  return to_rows<float>(images, pixel_statistics(images));
}

/// 0, 1, ..., count - 1.
inline std::vector<std::int64_t> first_samples(std::int64_t count) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<std::int64_t>(i);
  return samples;
}

/// The loss of a minibatch and its gradient.
template <class T>
struct Computed {
  double loss = 0;
  std::vector<T> gradient;

  friend bool operator==(const Computed&, const Computed&) = default;
};

template <class T>
Computed<T> compute(ObjectiveOf<T>& objective, Evaluator<T>& evaluator,
                    std::span<const std::int64_t> samples, const StreamKey& stream = {}) {
  Computed<T> result;
  // What is to be overwritten may be anything.
  result.gradient.assign(
      objective.flat_parameters().size(),
      objective.overwrites_gradients() ? std::numeric_limits<T>::quiet_NaN() : T{0});
  EvaluatorProgress progress;
  result.loss = evaluator.evaluate({.samples = samples, .stream = stream},
                                   {.gradient = result.gradient, .averaged = {}}, progress);
  return result;
}

template <class T>
Computed<T> compute(ObjectiveOf<T>& objective, std::span<const std::int64_t> samples,
                    const StreamKey& stream = {}) {
  return compute(objective, *objective.make_evaluator(), samples, stream);
}

}  // namespace rubato::test
