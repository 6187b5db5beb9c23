#pragma once

#include <filesystem>
#include <vector>

#include "buckets_json.hpp"

namespace rubato::page {

/// Of a timeline (runs/report/timeline/timeline_json.hpp) the step that took the median time, as
/// figures: what its threads did, and its cores, with the meetings of their sums. Empty where the
/// file is not there or has no whole step; what is not a timeline's is passed over.
[[nodiscard]] std::vector<Json> step_figures(const std::filesystem::path& timeline);

}  // namespace rubato::page
