#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rubato/core/error.hpp>

#include "core/memory.hpp"
#include "data/data_files.hpp"
#include "data/mapped_file.hpp"

namespace rubato {

namespace {

// Takes one character off the front of `text`: its code point. Nothing where it is no UTF-8:
// overlong, a surrogate or above the last.
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

std::vector<char32_t> characters_of(std::string_view text, const std::string& source) {
  std::vector<char32_t> characters;
  // As many as there are bytes, at most.
  require_memory(static_cast<double>(text.size()) * 2 * sizeof(char32_t),
                 fmt::format("the characters of {} need", source), "a shorter text needs less");
  characters.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    const auto character = take_character(rest);
    if (!character) {
      throw Error(fmt::format("{}: byte {} belongs to no character; accepted: a text in UTF-8",
                              source, text.size() - rest.size() + 1));
    }
    characters.push_back(*character);
  }
  return characters;
}

}  // namespace

DataSets read_text_samples(const std::filesystem::path& file, std::int64_t length) {
  const auto mapped = MappedFile::open(file, "a text in UTF-8");
  std::string_view text = mapped->bytes();
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::vector<char32_t> characters = characters_of(text, file.string());
  const std::int64_t pieces = (static_cast<std::int64_t>(characters.size()) - 1) / length;
  if (characters.size() < 2 || pieces < 1) {
    throw Error(
        fmt::format("{}: {} characters make no sample; accepted: at least {}, for pieces of "
                    "{} and the one that follows",
                    file.string(), characters.size(), length + 1, length));
  }
  std::vector<char32_t> alphabet = characters;
  std::ranges::sort(alphabet);
  alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
  std::unordered_map<char32_t, std::int32_t> token_of;
  for (const char32_t character : alphabet) {
    token_of.emplace(character, static_cast<std::int32_t>(token_of.size()));
  }
  auto tokens = std::make_shared<std::vector<std::int32_t>>();
  tokens->reserve(characters.size());
  for (const char32_t character : characters) tokens->push_back(token_of.at(character));

  const auto* const begin = reinterpret_cast<const char*>(tokens->data());
  const std::size_t stride = static_cast<std::size_t>(length) * sizeof(std::int32_t);
  const auto rows = [&](const char* first) {
    return SampleRows(ElementType::i32, {length}, stride, {{.begin = first, .count = pieces}},
                      tokens);
  };
  return {.train = {.inputs = rows(begin), .targets = rows(begin + sizeof(std::int32_t))},
          .inputs = InputKind::tokens,
          .classes = static_cast<std::int64_t>(alphabet.size()),
          .vocabulary = static_cast<std::int64_t>(alphabet.size()),
          .noun = "pieces"};
}

}  // namespace rubato
