#pragma once

#include <string>
#include <string_view>

namespace rubato {

/// The text with '?' for each control character but line ends: what is quoted of a file must not
/// steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// The text as one word of a command that a user pastes into a POSIX shell: as it is where no
/// character of it means anything there, else in quotes. A control character, which printable()
/// would change, is written in the form $'\n' of bash, zsh and ksh.
[[nodiscard]] std::string shell_quoted(std::string_view text);

/// The text as a string literal of Python, in single quotes.
[[nodiscard]] std::string python_quoted(std::string_view text);

}  // namespace rubato
