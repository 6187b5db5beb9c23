#pragma once

#include <optional>

#include "base/core/text/wrapped.hpp"

namespace rubato {

/// The columns of the terminal behind a descriptor; empty where there is none, or it does not say.
[[nodiscard]] std::optional<std::size_t> terminal_columns(int descriptor);

/// Its rows, likewise.
[[nodiscard]] std::optional<std::size_t> terminal_rows(int descriptor);

/// How long the lines to a descriptor may be: at least 20 columns.
[[nodiscard]] LineWidth line_width(int descriptor);

/// Whether the environment says that text may be UTF-8.
[[nodiscard]] bool speaks_utf8();

}  // namespace rubato
