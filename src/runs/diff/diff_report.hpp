#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "diff.hpp"

namespace rubato {

/// The result for people, without the distances: what differs, in which step, and why.
[[nodiscard]] std::string to_text(const RunsDifference& difference, const DiffRequest& request);

/// A line for people on how fast the distance grows; empty if there are no distances.
[[nodiscard]] std::string growth_text(const RunsDifference& difference);

/// The result as JSON text, and the JSON Schema of that.
[[nodiscard]] std::string to_json(const RunsDifference& difference, const DiffRequest& request);
[[nodiscard]] nlohmann::ordered_json diff_schema();

}  // namespace rubato
