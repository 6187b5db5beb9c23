#pragma once

#include <nlohmann/json.hpp>

#include "runs/page/html/html.hpp"

namespace rubato::page {

/// What a summary.json says, under the names of its schema and in their order; nothing where it is
/// none.
[[nodiscard]] Rows summary_rows(const nlohmann::json& summary);

}  // namespace rubato::page
