#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <rubato/loop/objective.hpp>
#include <rubato/loop/trainer.hpp>

namespace rubato {

/// The memory that a part needs, in values for each parameter.
struct PartNeeds {
  /// From step to step.
  int remembered = 0;
  /// At most, besides those, during an update.
  int scratch = 0;
  /// True if the squares of minibatches' gradients are summed with them.
  bool squares = false;
  /// True if other weights are tested than those that steps change.
  bool tests_others = false;
};

/// A part of a step, as everything knows it that need not know what it does. It stands in the file
/// of the part.
struct StepPart {
  /// The beginning of the names of its entries in a state, if digests of steps cover them.
  std::string_view prefix{};
  /// The values to which it binds a state; those that it does not have are left out, so that states
  /// of versions without the part stay valid.
  std::vector<BoundValue> (*bound)(const TrainOptions& options) = nullptr;
  PartNeeds (*needs)(const TrainOptions& options) = nullptr;
};

// The parts, each in its file.
[[nodiscard]] StepPart rate_part();
[[nodiscard]] StepPart optimizer_part();
[[nodiscard]] StepPart lookahead_part();
[[nodiscard]] StepPart averages_part();
[[nodiscard]] StepPart preparation_part();
[[nodiscard]] StepPart adjustments_part();

/// All parts, those of the model first.
[[nodiscard]] std::span<const StepPart> step_parts();

/// The sum of what all parts need.
[[nodiscard]] PartNeeds needs_of_parts(const TrainOptions& options);

}  // namespace rubato
