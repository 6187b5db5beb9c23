#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rubato {

/// Takes one character off the front of a text that is not empty: its code point. Nothing where it
/// is no UTF-8: overlong, a surrogate or above the last.
[[nodiscard]] std::optional<char32_t> take_character(std::string_view& text);

/// The bytes of a code point that take_character() gives.
[[nodiscard]] std::string utf8_of(char32_t character);

/// Where the first byte is that belongs to no character; the size of the text where all do.
[[nodiscard]] std::size_t end_of_utf8(std::string_view text);

}  // namespace rubato
