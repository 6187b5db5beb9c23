#include "text.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/core/limits.hpp"
#include "base/core/text/csv.hpp"
#include "base/core/throw_error.hpp"
#include "loop/data/data_files.hpp"
#include "loop/data/input_file.hpp"

namespace rubato {

std::optional<char32_t> take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  constexpr char32_t kLast = 0x10FFFF;
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return std::nullopt;
  char32_t point = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0U) != 0x80U) return std::nullopt;
    point = point << 6U | (byte & 0x3FU);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point < 0xE000;
  if (overlong || surrogate || point > kLast) return std::nullopt;
  text.remove_prefix(length);
  return point;
}

std::string utf8_of(char32_t character) {
  if (character < 0x80) return {static_cast<char>(character)};
  // Each byte after the first has six bits.
  std::string bytes;
  char32_t rest = character;
  char32_t room = 0x40;
  while (rest >= room) {
    bytes.insert(bytes.begin(), static_cast<char>(0x80U | (rest & 0x3FU)));
    rest >>= 6U;
    room = bytes.size() == 1 ? 0x20 : room >> 1U;
  }
  const char32_t marks = 0xFF00U >> (bytes.size() + 1) & 0xFFU;
  bytes.insert(bytes.begin(), static_cast<char>(marks | rest));
  return bytes;
}

std::size_t end_of_utf8(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty() && take_character(rest)) {
  }
  return text.size() - rest.size();
}

namespace {

// Joined texts may contain one in their middle, too.
constexpr char32_t kByteOrderMark = 0xFEFF;

std::vector<char32_t> characters_of(std::string_view text, const std::string& source) {
  std::vector<char32_t> characters;
  // There are at most as many characters as bytes.
  require_memory(static_cast<double>(text.size()) * 2 * sizeof(char32_t),
                 fmt::format("the characters of {} need", source), "a shorter text needs less");
  characters.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const auto character = take_character(rest);
    if (!character) {
      throw_error("{}: byte {} belongs to no character; accepted: a text in UTF-8", source,
                  text.size() - rest.size() + 1);
    }
    if (*character != kByteOrderMark) characters.push_back(*character);
  }
  return characters;
}

std::vector<char32_t> characters_in(const std::filesystem::path& file, std::int64_t length) {
  const auto mapped = MappedFile::open(file, "a text in UTF-8");
  const std::string source = file.string();
  detail::require_no_utf16(mapped->bytes(), source);
  std::vector<char32_t> characters = characters_of(mapped->bytes(), source);
  if (static_cast<std::int64_t>(characters.size()) <= length) {
    throw_error(
        "{}: {} characters make no sample; accepted: at least {}, for pieces of {} and the one "
        "that follows",
        source, characters.size(), length + 1, length);
  }
  return characters;
}

// Makes pieces of `length` characters, each with the characters that follow.
SampleSet pieces_of(const std::vector<char32_t>& characters, std::span<const char32_t> alphabet,
                    std::int64_t length, const std::string& source) {
  std::unordered_map<char32_t, std::int32_t> token_of;
  for (const char32_t character : alphabet) {
    token_of.emplace(character, static_cast<std::int32_t>(token_of.size()));
  }
  const auto tokens = std::make_shared<std::vector<std::int32_t>>();
  tokens->reserve(characters.size());
  for (const char32_t character : characters) {
    const auto token = token_of.find(character);
    if (token == token_of.end()) {
      throw_error("{}: character {} is {}; accepted: characters of the text that was trained on",
                  source, tokens->size() + 1, detail::excerpt(utf8_of(character)));
    }
    tokens->push_back(token->second);
  }
  const std::int64_t pieces = (static_cast<std::int64_t>(characters.size()) - 1) / length;
  const auto* const begin = reinterpret_cast<const char*>(tokens->data());
  const std::size_t stride = static_cast<std::size_t>(length) * sizeof(std::int32_t);
  const auto rows = [&](const char* first) {
    return SampleRows(ElementType::i32, {length}, stride, {{.begin = first, .count = pieces}},
                      tokens);
  };
  return {.inputs = rows(begin), .targets = rows(begin + sizeof(std::int32_t))};
}

}  // namespace

DataSets read_text_samples(const std::filesystem::path& file, std::int64_t length) {
  const std::vector<char32_t> characters = characters_in(file, length);
  std::vector<char32_t> alphabet = characters;
  std::ranges::sort(alphabet);
  alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
  DataSets data{.train = pieces_of(characters, alphabet, length, file.string()),
                .inputs = InputKind::tokens,
                .classes = static_cast<std::int64_t>(alphabet.size()),
                .vocabulary = static_cast<std::int64_t>(alphabet.size()),
                .noun = "pieces"};
  for (const char32_t character : alphabet) data.alphabet += utf8_of(character);
  return data;
}

SampleSet read_new_text_samples(const std::filesystem::path& file, const DataRecord& record) {
  const std::int64_t length = record.shape.front();
  const std::vector<char32_t> alphabet = characters_of(record.alphabet, "the alphabet");
  return pieces_of(characters_in(file, length), alphabet, length, file.string());
}

}  // namespace rubato
