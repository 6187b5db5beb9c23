#include "text.hpp"

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

}  // namespace rubato
