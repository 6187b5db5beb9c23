#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Helpers of all text readers for a line or a field.

namespace rubato::detail {

/// Separators that a header may use; the rows then use the same.
inline constexpr std::array<char, 3> kSeparators{',', ';', '\t'};

/// The byte order mark that may precede text in UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// A piece of the file for a one-line message: quoted, short, and without control characters.
[[nodiscard]] std::string excerpt(std::string_view text);

/// Throws Error about `source` if its beginning shows UTF-16: a byte order mark, or a first
/// character of which half is zero.
void require_no_utf16(std::string_view beginning, const std::string& source);

[[nodiscard]] bool is_blank(std::string_view text);

/// True if `field` is `name`, which is in lower case. Case is ignored because spreadsheets
/// capitalise "step" at the beginning of a cell.
[[nodiscard]] bool is_name(std::string_view field, std::string_view name);

/// The whole number that `field` writes, or nothing. "8.0" is 8: pandas turns a column of whole
/// numbers with gaps into floating-point numbers.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view field);

/// The reason why `field` is not a whole number in a range above 0; to be called only if there is
/// one.
[[nodiscard]] std::string_view flaw_of(std::string_view field);

}  // namespace rubato::detail
