#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "buckets.hpp"

namespace rubato::page {

// Buckets as web/lines.js reads them.

using Json = nlohmann::ordered_json;

/// A number with the digits that a chart can show; null where it is not finite.
[[nodiscard]] Json chart_number(double value);

/// The axes, for the page to choose from.
[[nodiscard]] Json axis_rows_json();
/// By axis, where each bucket ends. Without those on which the run never moved.
[[nodiscard]] Json axes_json(const Buckets& buckets);

/// A number, times `factor`: a value for each bucket, or the lists `low`, `mean` and `high` where
/// some bucket holds several values.
[[nodiscard]] Json numbers_json(const Buckets& buckets, const std::string& name, double factor);

}  // namespace rubato::page
