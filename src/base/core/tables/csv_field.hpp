#pragma once

#include <string>
#include <string_view>

namespace rubato {

/// `text` as a field of CSV: in quotes if a reader would misread it otherwise (a comma, a quote, an
/// end of line, or a blank that would be trimmed), unchanged if not.
[[nodiscard]] std::string csv_field(std::string_view text);

}  // namespace rubato
