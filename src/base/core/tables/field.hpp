#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What all readers of text make of a line or a field.

namespace rubato::detail {

/// What a header may have between its names; the rows then have the same.
inline constexpr std::array<char, 3> kSeparators{',', ';', '\t'};

/// What may stand before a text in UTF-8.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// A piece of the file fit for a one-line message: quoted, short, and without control characters.
[[nodiscard]] std::string excerpt(std::string_view text);

/// Throws Error about `source` where a text that begins so is in UTF-16, as its byte order mark or
/// the zero that is half of its first character says.
void require_no_utf16(std::string_view beginning, const std::string& source);

[[nodiscard]] bool is_blank(std::string_view text);

/// Whether `field` is `name`, which is in small letters: spreadsheets make "Step" of "step" where
/// it begins a cell.
[[nodiscard]] bool is_name(std::string_view field, std::string_view name);

/// The whole number that `field` writes, or nothing. "8.0" is 8: pandas makes a column of
/// floating-point numbers of whole numbers with gaps.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view field);

/// What keeps `field` from being a whole number in some range above 0; to be called only when
/// something does.
[[nodiscard]] std::string_view flaw_of(std::string_view field);

}  // namespace rubato::detail
