#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::app {

/// One line `key = value` of a configuration file.
struct ConfigEntry {
  std::string key;
  /// The value as the command line would give it: without quotes, escapes resolved.
  std::string value;
  /// Counted from 1.
  std::int64_t line = 0;
};

/// Reads a configuration file: the part of TOML that names options, `key = value` with strings,
/// numbers, true and false, and comments; a word needs no quotes. Throws Error with file and line
/// for anything else, and for a key that stands there twice.
[[nodiscard]] std::vector<ConfigEntry> read_config(const std::filesystem::path& path);
/// The same for text at hand; `source` stands for the file's name in messages.
[[nodiscard]] std::vector<ConfigEntry> parse_config(const std::string& text, std::string source);

/// `text` as a TOML string, which read_config() reads back.
[[nodiscard]] std::string toml_string(std::string_view text);

}  // namespace rubato::app
