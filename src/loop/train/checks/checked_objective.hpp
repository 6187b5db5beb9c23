#pragma once

#include <memory>

#include <rubato/loop/objective.hpp>

namespace rubato {

/// Returns the objective. Throws Error for null, and for one that the loop cannot drive: its
/// parameters are neither floats nor doubles, its arrays do not have the place or type that they
/// claim, or two of them have the same name.
[[nodiscard]] std::unique_ptr<Objective> checked_objective(std::unique_ptr<Objective> objective);

}  // namespace rubato
