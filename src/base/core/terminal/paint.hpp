#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rubato {

/// The colours of text on a terminal, which chooses their shades.
enum class Ink { plain, dim, red, green, yellow, blue, magenta, cyan };

/// `text` in a colour; as it is where `colours` is false.
[[nodiscard]] std::string painted(std::string_view text, Ink ink, bool colours);

/// Columns that `text` takes up where some of it is painted().
[[nodiscard]] std::size_t painted_width(std::string_view text);

}  // namespace rubato
