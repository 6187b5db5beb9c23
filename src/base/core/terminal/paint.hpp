#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rubato {

/// Colours of text; the terminal chooses their shades.
enum class Ink { plain, dim, red, green, yellow, blue, magenta, cyan };

/// `text` in a colour, or unchanged if not `colours`.
[[nodiscard]] std::string painted(std::string_view text, Ink ink, bool colours);

/// Columns that `text` occupies, ignoring the codes of painted().
[[nodiscard]] std::size_t painted_width(std::string_view text);

}  // namespace rubato
