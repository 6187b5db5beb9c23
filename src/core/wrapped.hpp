#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rubato {

/// Columns that `text` takes up on a terminal: one for each character of UTF-8.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// The words of `text`, which white space separates, in lines of at most 80 columns where no word
/// is longer. What stands before the text on its first line has `indent` columns; every line after
/// that is indented by as many blanks. No line ends with a blank, and the last has no '\n'.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent);

}  // namespace rubato
