#include "app/config_file.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

namespace rubato::app {

namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kNameLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kAcceptedLine = "a line such as 'cores = 8', a comment after '#'";

struct Escape {
  char letter;
  char meaning;
};
constexpr std::array<Escape, 5> kEscapes{
    {{'"', '"'}, {'\\', '\\'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}}};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Reads the value at the front of `text` and takes it away from it. Empty when it is malformed.
std::optional<std::string> take_literal(std::string_view& text) {
  const std::size_t end = text.find('\'', 1);
  if (end == std::string_view::npos) return std::nullopt;
  std::string value(text.substr(1, end - 1));
  text.remove_prefix(end + 1);
  return value;
}

std::optional<std::string> take_string(std::string_view& text) {
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] != '\\') {
      value += text[i];
      continue;
    }
    if (++i == text.size()) break;
    const auto* const escape = std::find_if(kEscapes.begin(), kEscapes.end(),
                                            [&](const Escape& e) { return e.letter == text[i]; });
    if (escape == kEscapes.end()) break;
    value += escape->meaning;
  }
  return std::nullopt;
}

std::optional<std::string> take_word(std::string_view& text) {
  const std::string_view word = trimmed(text.substr(0, text.find('#')));
  if (word.empty()) return std::nullopt;
  text = {};
  return std::string(word);
}

std::optional<std::string> read_value(std::string_view text) {
  text = trimmed(text);
  std::optional<std::string> value = text.starts_with('"')    ? take_string(text)
                                     : text.starts_with('\'') ? take_literal(text)
                                                              : take_word(text);
  const std::string_view rest = trimmed(text);
  if (!rest.empty() && !rest.starts_with('#')) return std::nullopt;
  return value;
}

class Reader {
 public:
  explicit Reader(std::string source) : source_(std::move(source)) {}

  std::vector<ConfigEntry> entries(std::istream& text) {
    for (std::string line; std::getline(text, line);) {
      ++line_number_;
      read_line(line);
    }
    return std::move(entries_);
  }

 private:
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const {
    throw Error(fmt::format("{}:{}: {}; accepted: {}", source_, line_number_, wrong, accepted));
  }

  void read_line(std::string_view line) {
    if (line_number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    line = trimmed(line);
    if (line.empty() || line.starts_with('#')) return;
    if (line.starts_with('[')) fail("sections mean nothing here", kAcceptedLine);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) fail("there is no '='", kAcceptedLine);
    const std::string key(trimmed(line.substr(0, equals)));
    std::optional<std::string> value = read_value(line.substr(equals + 1));
    // What is no name is not shown: it may be the inside of any file.
    if (key.empty() || key.find_first_not_of(kNameLetters) != std::string::npos) {
      fail("there is no name before the '='", kAcceptedLine);
    }
    if (!value) fail(fmt::format("the value of '{}' is malformed", key), kAcceptedLine);
    for (const ConfigEntry& entry : entries_) {
      if (entry.key == key) {
        fail(fmt::format("'{}' stands in line {} already", key, entry.line), "each name once");
      }
    }
    entries_.push_back({.key = key, .value = *std::move(value), .line = line_number_});
  }

  std::string source_;
  std::int64_t line_number_ = 0;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> read_config(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path)) {
    throw Error(
        fmt::format("cannot read the configuration {}; accepted: a file of lines such as "
                    "'cores = 8'",
                    path.string()));
  }
  return Reader(path.string()).entries(file);
}

std::vector<ConfigEntry> parse_config(const std::string& text, std::string source) {
  std::istringstream stream(text);
  return Reader(std::move(source)).entries(stream);
}

std::string toml_string(std::string_view text) {
  std::string value = "\"";
  for (const char c : text) {
    const auto* const escape = std::find_if(kEscapes.begin(), kEscapes.end(),
                                            [&](const Escape& e) { return e.meaning == c; });
    if (escape == kEscapes.end()) {
      value += c;
    } else {
      value += '\\';
      value += escape->letter;
    }
  }
  return value + '"';
}

}  // namespace rubato::app
