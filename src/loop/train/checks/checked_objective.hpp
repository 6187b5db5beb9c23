#pragma once

#include <memory>

#include <rubato/loop/objective.hpp>

namespace rubato {

/// The objective. Throws Error for null, and for one that the loop cannot drive: its parameters are
/// neither floats nor doubles, its arrays are not where and what they say they are, or two of them
/// have one name.
[[nodiscard]] std::unique_ptr<Objective> checked_objective(std::unique_ptr<Objective> objective);

}  // namespace rubato
