#pragma once

#include <string>
#include <string_view>

namespace rubato {

/// `text` as a field of CSV: in quotes where a reader would take it for something else without
/// (a comma, a quote, the end of a line, or a blank that it would trim), as it is otherwise.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace rubato
