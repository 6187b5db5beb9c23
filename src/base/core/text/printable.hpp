#pragma once

#include <string>
#include <string_view>

namespace rubato {

/// The text with '?' instead of each control character except line ends, so that quotations from a
/// file cannot steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// The text as one word for a POSIX shell: unchanged if no character of it has a meaning there,
/// else in quotes. Control characters, which printable() would change, are written in the form
/// $'\n' of bash, zsh and ksh.
[[nodiscard]] std::string shell_quoted(std::string_view text);

/// The text as a string literal of Python, in single quotes.
[[nodiscard]] std::string python_quoted(std::string_view text);

}  // namespace rubato
