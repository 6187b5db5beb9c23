#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace rubato::page {

/// Names and what they are.
using Rows = std::vector<std::pair<std::string, std::string>>;

/// What a summary.json says, under the names of its schema and in their order; nothing where it is
/// none.
[[nodiscard]] Rows summary_rows(const nlohmann::json& summary);

}  // namespace rubato::page
