#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rubato {

/// Removes the first character of a text that is not empty, and returns its code point. Returns
/// nothing for invalid UTF-8: overlong, a surrogate or above the last code point.
[[nodiscard]] std::optional<char32_t> take_character(std::string_view& text);

/// Returns the bytes of a code point as take_character() returns it.
[[nodiscard]] std::string utf8_of(char32_t character);

/// Returns the index of the first byte that belongs to no character; the size of the text if there
/// is none.
[[nodiscard]] std::size_t end_of_utf8(std::string_view text);

}  // namespace rubato
