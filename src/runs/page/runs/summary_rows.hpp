#pragma once

#include <nlohmann/json.hpp>

#include "runs/page/html/html.hpp"

namespace rubato::page {

/// The contents of a summary.json, with the names of its schema and in their order; empty if
/// `summary` is not an object.
[[nodiscard]] Rows summary_rows(const nlohmann::json& summary);

}  // namespace rubato::page
