#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "buckets.hpp"

namespace rubato::page {

// Buckets as web/curves.js reads them.

/// A number with the digits that a chart can show; null where it is not finite.
[[nodiscard]] nlohmann::ordered_json chart_number(double value);

/// The axes, for the page to choose from.
[[nodiscard]] nlohmann::ordered_json axis_rows_json();
/// By axis, where each bucket ends. Without those on which the run never moved.
[[nodiscard]] nlohmann::ordered_json axes_json(const Buckets& buckets);

/// A number, times `factor`: a value for each bucket, or the lists `low`, `mean` and `high` where
/// some bucket holds several values.
[[nodiscard]] nlohmann::ordered_json numbers_json(const Buckets& buckets, const std::string& name,
                                                  double factor);

}  // namespace rubato::page
