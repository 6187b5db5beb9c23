#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <rubato/libtorch/model.hpp>

namespace rubato {

struct SortedTensors;

/// A BufferRule that has been checked, with the place of its counter.
struct BufferTreatment {
  BufferCombination combination = BufferCombination::mean;
  std::optional<double> momentum{};
  /// Of SortedTensors::counters; behind them come the SortedTensors::buffers, as Module::to() makes
  /// floating-point numbers of counters, too.
  std::optional<std::size_t> counter{};
};

/// Of each floating-point buffer and of each other one, in their order.
struct BufferTreatments {
  std::vector<BufferTreatment> buffers;
  std::vector<BufferTreatment> counters;
};

/// What the rules of `model` say, and where they say nothing, what the type does. Throws Error for
/// a rule that names no buffer of the model, or that its buffer cannot follow.
[[nodiscard]] BufferTreatments treatments_of(const Model& model, const SortedTensors& sorted);

/// What the mean change of a running average is multiplied by when `minibatches` of a step, each of
/// which has updated it `updates` times from the same value, count as if they had come one after
/// the other. r being the average and s what the statistics are in the mean, the mean change is
///
///     (1 - (1 - m)^updates) (s - r), and becomes (1 - (1 - m)^(updates minibatches)) (s - r)
///
/// with momentum m; it is 1 for one minibatch.
[[nodiscard]] double factor_of_average(double momentum, std::int64_t minibatches,
                                       std::int64_t updates);
/// The same of a cumulative average that had been updated `before` times before the step.
[[nodiscard]] double factor_of_cumulative_average(std::int64_t before, std::int64_t minibatches,
                                                  std::int64_t updates);

}  // namespace rubato
