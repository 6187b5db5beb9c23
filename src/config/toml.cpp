// The parser is compiled into this file, and not taken from its shared library, so that sanitizers
// and the fuzzer see it.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0

#include "config/toml.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>

namespace rubato {

namespace {

constexpr std::string_view kAccepted = "TOML, a line such as 'cores = 8' for each option";
// Each dot of a key nests one table in another, which the parser walks and destroys recursively.
constexpr std::ptrdiff_t kMostDots = 4096;
constexpr std::string_view kNameLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

[[noreturn]] void fail(const std::string& source, std::int64_t line, std::string_view wrong,
                       std::string_view accepted) {
  throw Error(fmt::format("{}:{}: {}; accepted: {}", source, line, wrong, accepted));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view line_of(std::string_view text, std::int64_t line) {
  for (; line > 1 && !text.empty(); --line) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return text.substr(0, text.find('\n'));
}

// Whether all of `text` is of these letters, and there is some.
bool consists_of(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

// A word that stands without the quotes that a string needs, and its key.
struct BareWord {
  std::string_view key;
  std::string_view word;
};
std::optional<BareWord> bare_word(std::string_view line) {
  constexpr std::string_view kOthers = ":.,=+*/";
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view key = trimmed(line.substr(0, equals));
  const std::string_view rest = line.substr(equals + 1);
  const std::string_view word = trimmed(rest.substr(0, rest.find('#')));
  const bool is_word = consists_of(word, fmt::format("{}{}", kNameLetters, kOthers));
  if (!consists_of(key, kNameLetters) || !is_word || is_number(word)) return std::nullopt;
  return BareWord{key, word};
}

[[noreturn]] void fail(const std::string& source, std::string_view text,
                       const toml::parse_error& error) {
  const auto line = static_cast<std::int64_t>(error.source().begin.line);
  if (const auto bare = bare_word(line_of(text, line))) {
    const auto [key, word] = *bare;
    fail(source, line, fmt::format("{}: {} is no value of TOML", key, word),
         fmt::format("a string in quotes: {} = \"{}\"", key, word));
  }
  fail(source, line, error.description(), kAccepted);
}

std::string_view type_name(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    default:
      return "a date or time";
  }
}

// As the reader of a number takes it: one with a fraction stays recognisable.
std::string text_of(double number) {
  std::string text = fmt::to_string(number);
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

TomlEntry entry_of(const toml::key& key, const toml::node& node, const std::string& source) {
  TomlEntry entry{.key = std::string(key.str()),
                  .value = {},
                  .type = TomlEntry::Type::string,
                  .line = static_cast<std::int64_t>(key.source().begin.line)};
  // What is no name is not shown: it may be the inside of any file.
  if (!consists_of(entry.key, kNameLetters)) {
    fail(source, entry.line, "there is no name before the '='", kAccepted);
  }
  if (const auto* const string = node.as_string()) {
    entry.value = string->get();
  } else if (const auto* const whole = node.as_integer()) {
    entry.value = fmt::to_string(whole->get());
    entry.type = TomlEntry::Type::number;
  } else if (const auto* const real = node.as_floating_point()) {
    entry.value = text_of(real->get());
    entry.type = TomlEntry::Type::number;
  } else if (const auto* const boolean = node.as_boolean()) {
    entry.value = boolean->get() ? "true" : "false";
    entry.type = TomlEntry::Type::boolean;
  } else {
    fail(source, entry.line,
         fmt::format("'{}' is {}, which no option is", entry.key, type_name(node.type())),
         kAccepted);
  }
  return entry;
}

toml::table table_of(std::string_view text, const std::string& source) {
  if (std::count(text.begin(), text.end(), '.') > kMostDots) {
    throw Error(
        fmt::format("{}: there are more than {} dots; accepted: {}", source, kMostDots, kAccepted));
  }
  toml::parse_result result = toml::parse(text);
  if (!result) fail(source, text, result.error());
  return std::move(result).table();
}

// A table is in the order of its keys: these are in that of the document.
std::vector<const toml::key*> keys_in_order(const toml::table& table) {
  std::vector<const toml::key*> keys;
  for (const auto& [key, node] : table) keys.push_back(&key);
  std::sort(keys.begin(), keys.end(), [](const toml::key* a, const toml::key* b) {
    return a->source().begin < b->source().begin;
  });
  return keys;
}

TomlTable::Line line_of(const toml::key& key, const toml::node& node, const std::string& source) {
  const toml::array* const list = node.as_array();
  if (list == nullptr) return {std::string(key.str()), {entry_of(key, node, source)}};
  if (list->empty()) {
    fail(source, static_cast<std::int64_t>(key.source().begin.line),
         fmt::format("'{}' is an empty list", key.str()), "a value, or several in []");
  }
  TomlTable::Line line{std::string(key.str()), {}};
  for (const toml::node& element : *list) line.values.push_back(entry_of(key, element, source));
  return line;
}

}  // namespace

std::vector<TomlEntry> parse_toml(std::string_view text, const std::string& source) {
  const toml::table table = table_of(text, source);
  std::vector<TomlEntry> entries;
  for (const toml::key* const key : keys_in_order(table)) {
    entries.push_back(entry_of(*key, *table.get(key->str()), source));
  }
  return entries;
}

std::vector<TomlTable> parse_toml_tables(std::string_view text, const std::string& source) {
  const toml::table document = table_of(text, source);
  std::vector<TomlTable> tables(1);
  for (const toml::key* const key : keys_in_order(document)) {
    const toml::node& node = *document.get(key->str());
    const toml::table* const below = node.as_table();
    if (below == nullptr) {
      tables.front().lines.push_back(line_of(*key, node, source));
      continue;
    }
    TomlTable table{.name = std::string(key->str()),
                    .line = static_cast<std::int64_t>(key->source().begin.line),
                    .lines = {}};
    for (const toml::key* const inner : keys_in_order(*below)) {
      table.lines.push_back(line_of(*inner, *below->get(inner->str()), source));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

std::string toml_string(std::string_view text) {
  // JSON's strings are TOML's, but for this character.
  constexpr char kDelete = '\x7F';
  std::string quoted;
  try {
    quoted = nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error("a configuration file cannot hold text that is not UTF-8");
  }
  for (std::size_t at = 0; (at = quoted.find(kDelete, at)) != std::string::npos;) {
    quoted.replace(at, 1, "\\u007F");
  }
  return quoted;
}

}  // namespace rubato
