#include "printable.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace rubato {

namespace {

// Control characters need escapes; the bytes of UTF-8 sequences do not.
bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

// The text in single quotes, with quotes and backslashes escaped, and codes instead of control
// characters.
std::string with_escapes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (is_control(c)) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      continue;
    }
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '\'';
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // Control characters from 0x80 to 0x9F have two bytes in UTF-8.
    const bool is_long = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    const bool is_control = is_long || (byte < 0x20 && byte != '\n') || byte == 0x7F;
    shown += is_control ? '?' : text[i];
    if (is_long) ++i;
  }
  return shown;
}

std::string shell_quoted(std::string_view text) {
  // Letters beyond ASCII have no meaning to a shell, either.
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,+@%";
  // zsh expands a leading '=' to the path of a command.
  const bool is_plain =
      !text.empty() && text.front() != '=' && std::ranges::all_of(text, [&](char c) {
        return static_cast<unsigned char>(c) >= 0x80 || kPlain.find(c) != std::string_view::npos;
      });
  if (is_plain) return std::string(text);
  if (std::ranges::any_of(text, is_control)) return "$" + with_escapes(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + '\'';
}

std::string python_quoted(std::string_view text) {
  return with_escapes(text);
}

}  // namespace rubato
