#pragma once

#include <optional>

#include "base/core/text/wrapped.hpp"

namespace rubato {

/// Columns of the terminal behind a descriptor; empty if it is not one, or does not say.
[[nodiscard]] std::optional<std::size_t> terminal_columns(int descriptor);

/// Rows of the terminal behind a descriptor; empty if it is not one, or does not say.
[[nodiscard]] std::optional<std::size_t> terminal_rows(int descriptor);

/// The longest lines to write to a descriptor: at least 20 columns.
[[nodiscard]] LineWidth line_width(int descriptor);

/// True if the environment's locale is UTF-8.
[[nodiscard]] bool speaks_utf8();

}  // namespace rubato
