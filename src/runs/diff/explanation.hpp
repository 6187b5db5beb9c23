#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "diff.hpp"
#include "stepped_training.hpp"

namespace rubato {

/// Two trainings that have both taken a step after which they differ.
struct PartedTrainings {
  std::array<const SteppedTraining*, 2> after{};
  /// Makes either of them again, with its state before the step.
  std::function<std::unique_ptr<SteppedTraining>(std::size_t side)> make_before{};
};

/// Names the first difference in the step, in the order of its computation. `step` is counted from
/// 1; `options` are those that differ.
[[nodiscard]] FirstDifference explain(const PartedTrainings& parted, std::int64_t step,
                                      const std::vector<NamedDifference>& options);

/// The names of those differing options that have an influence at that stage.
[[nodiscard]] std::vector<std::string> options_at(DiffStage stage,
                                                  const std::vector<NamedDifference>& options);

/// Names an element of what an optimizer remembers by the parameter to which it belongs.
void name_by_parameter(DifferentElement& element, std::span<const TrainedArray> trained,
                       const State& state);

}  // namespace rubato
