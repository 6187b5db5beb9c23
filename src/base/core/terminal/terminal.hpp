#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/text/text.hpp"

namespace rubato {

/// Columns of the terminal behind a descriptor; empty if it is not one, or does not say.
[[nodiscard]] std::optional<std::size_t> terminal_columns(int descriptor);

/// Rows of the terminal behind a descriptor; empty if it is not one, or does not say.
[[nodiscard]] std::optional<std::size_t> terminal_rows(int descriptor);

/// The longest lines to write to a descriptor: at least 20 columns.
[[nodiscard]] LineWidth line_width(int descriptor);

/// True if the environment's locale is UTF-8.
[[nodiscard]] bool speaks_utf8();

/// Colours of text; the terminal chooses their shades.
enum class Ink { plain, dim, red, green, yellow, blue, magenta, cyan };

/// `text` in a colour, or unchanged if not `colours`.
[[nodiscard]] std::string painted(std::string_view text, Ink ink, bool colours);

/// Columns that `text` occupies, ignoring the codes of painted().
[[nodiscard]] std::size_t painted_width(std::string_view text);

}  // namespace rubato
