#pragma once

#include <string>
#include <string_view>

namespace rubato {

/// The text with '?' for each control character but line ends: what is quoted of a file must not
/// steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace rubato
