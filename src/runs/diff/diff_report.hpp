#pragma once

#include <string>

#include "diff.hpp"

namespace rubato {

/// The result for people, without the distances: what differs, in which step, and why.
[[nodiscard]] std::string to_text(const RunsDifference& difference, const DiffRequest& request);

/// A line for people on how fast the distance grows; empty if there are no distances.
[[nodiscard]] std::string growth_text(const RunsDifference& difference);

/// The result as JSON text (docs/schemas/diff.json).
[[nodiscard]] std::string to_json(const RunsDifference& difference, const DiffRequest& request);

}  // namespace rubato
