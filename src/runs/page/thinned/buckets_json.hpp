#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "buckets.hpp"

namespace rubato::page {

// JSON of buckets, in the form that web/lines.js reads.

using Json = nlohmann::ordered_json;

/// A number rounded to the digits that a chart can show; null if it is not finite.
[[nodiscard]] Json chart_number(double value);

/// All axes that a reader can choose from.
[[nodiscard]] Json axis_rows_json();
/// The end of each bucket on each axis, except axes on which the run never moved.
[[nodiscard]] Json axes_json(const Buckets& buckets);

/// The values of a number, multiplied by `factor`: one for each bucket, or the lists `low`, `mean`
/// and `high` if any bucket has several values.
[[nodiscard]] Json numbers_json(const Buckets& buckets, const std::string& name, double factor);

}  // namespace rubato::page
