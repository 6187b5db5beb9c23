#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include <rubato/base/parse.hpp>

#include "base/core/text/csv.hpp"
#include "table_encoding.hpp"

namespace rubato {

/// The separators that have a name, because an option or a message cannot show them as they are.
inline constexpr std::array<Choice<std::string_view>, 4> kNamedSeparators{
    {{",", "comma"}, {";", "semicolon"}, {"\t", "tab"}, {detail::kBlanks, "blanks"}}};

/// The separator that a user names: by one of these names, or as it is. Blanks around it do not
/// count. Throws Error if it has a quote or a line end.
[[nodiscard]] std::string parse_separator(std::string_view text);

/// The separator as messages show it: "tab", "'|'".
[[nodiscard]] std::string shown_separator(std::string_view separator);

/// The comma, semicolon or tab that occurs most often in the first line. If numbers have commas,
/// the other two take precedence.
[[nodiscard]] char usual_separator(std::string_view first_line, Decimal decimal);

/// The separator that the beginning of a table shows for certain although the usual one does not
/// divide its first line, which is an error without it; otherwise empty. It is certain if exactly
/// one of comma, semicolon, tab and '|', or if none of these but blanks, divides each of the first
/// 100 rows, of at least two, into the same number of fields. Throws Error for a file that cannot
/// be read.
[[nodiscard]] std::string found_separator(const std::filesystem::path& file, TableFormat format);

}  // namespace rubato
