#pragma once

#include <filesystem>
#include <vector>

#include "buckets_json.hpp"

namespace rubato::page {

/// The step with the median duration of a timeline (runs/report/timeline/timeline_json.hpp) as
/// figures: the activities of its threads and of its cores, with the meetings of their sums. Empty
/// if the file does not exist or has no complete step; invalid events are skipped.
[[nodiscard]] std::vector<Json> step_figures(const std::filesystem::path& timeline);

}  // namespace rubato::page
