#pragma once

#include <cstddef>
#include <string>

#include "buckets.hpp"

namespace rubato::page {

/// The first charts of a page, drawn: figures with curves and with intervals as HTML with SVG that
/// needs no script, for places in which none may run. At most `most` of all, and two of each
/// section. They look as in the browser (web/lines.js, web/intervals.js), at a fixed width.
/// `charts` are those of one run or of an experiment, in the form that web/main.js reads. Empty if
/// they have no such figure with a value.
[[nodiscard]] std::string drawn_charts(const Json& charts, std::size_t most);

}  // namespace rubato::page
