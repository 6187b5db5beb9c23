#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rubato::app {

/// `text` broken at its spaces into lines of at most 80 columns; what stands before it on its first
/// line has `indent` columns, and every line after that is indented by as many blanks.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent);

}  // namespace rubato::app
