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
  /// Index of the counter among SortedTensors::counters, followed by SortedTensors::buffers, as
  /// Module::to() makes counters floating-point, too.
  std::optional<std::size_t> counter{};
};

/// Treatments of the floating-point buffers and of the other ones, each in their order.
struct BufferTreatments {
  std::vector<BufferTreatment> buffers;
  std::vector<BufferTreatment> counters;
};

/// Treatments by the rules of `model` and, for buffers without a rule, by their type. Throws Error
/// for a rule that names no buffer of the model, or that its buffer cannot follow.
[[nodiscard]] BufferTreatments treatments_of(const Model& model, const SortedTensors& sorted);

/// Factor for the mean change of a running average when `minibatches` of a step, each of which has
/// updated it `updates` times from the same value, count as if they had come one after the other.
/// With r the average and s the mean of the statistics, the mean change is
///
///     (1 - (1 - m)^updates) (s - r), and becomes (1 - (1 - m)^(updates minibatches)) (s - r)
///
/// with momentum m; the factor is 1 for one minibatch.
[[nodiscard]] double factor_of_average(double momentum, std::int64_t minibatches,
                                       std::int64_t updates);
/// The same factor for a cumulative average that had been updated `before` times before the step.
[[nodiscard]] double factor_of_cumulative_average(std::int64_t before, std::int64_t minibatches,
                                                  std::int64_t updates);

}  // namespace rubato
