#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// One line `key = value` of a TOML document.
struct TomlEntry {
  enum class Type { string, number, boolean };

  std::string key;
  /// The value as a command line would give it: a string without its quotes, numbers in decimal.
  std::string value;
  Type type = Type::string;
  /// The line number, counted from 1.
  std::int64_t line = 0;
};

/// The lines below a heading `[name]`; those before the first have an empty name.
struct TomlTable {
  struct Line {
    std::string key;
    /// The values of the line: one, or the elements of a list, which has at least one.
    std::vector<TomlEntry> values;
  };

  std::string name;
  /// The line number of the heading, counted from 1.
  std::int64_t line = 0;
  std::vector<Line> lines;
};

/// The entries of a document, in their order. Throws Error with `source` and line for invalid TOML,
/// and for tables, arrays and dates.
[[nodiscard]] std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& source);

/// The tables of a document with headings, in their order, preceded by the lines without a heading;
/// values may be lists. Throws Error as parse_toml() does, and for tables in tables, lists in lists
/// and empty lists.
[[nodiscard]] std::vector<TomlTable> parse_toml_tables(std::string_view text,
                                                       const std::string& source);

/// Returns `text` as a TOML string. Throws Error if it is not UTF-8.
[[nodiscard]] std::string toml_string(std::string_view text);

}  // namespace rubato
