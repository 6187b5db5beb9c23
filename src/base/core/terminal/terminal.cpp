#include "terminal.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>

#include "base/core/text/text.hpp"

namespace rubato {

std::optional<std::size_t> terminal_columns(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::optional<std::size_t> terminal_rows(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return std::nullopt;
  return size.ws_row;
}

LineWidth line_width(int descriptor) {
  constexpr std::size_t kLeast = 20;
  const auto columns = terminal_columns(descriptor);
  return columns ? LineWidth{std::max(*columns, kLeast)} : LineWidth{};
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

std::string painted(std::string_view text, Ink ink, bool colours) {
  // The codes are in the order of Ink.
  constexpr std::array<std::string_view, 8> kCodes{"", "2", "31", "32", "33", "34", "35", "36"};
  const std::string_view code = kCodes.at(static_cast<std::size_t>(ink));
  if (!colours || code.empty() || text.empty()) return std::string(text);
  return std::string("\x1b[").append(code).append("m").append(text).append("\x1b[0m");
}

std::size_t painted_width(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      shown += text[i];
      continue;
    }
    i = text.find('m', i);
    if (i == std::string_view::npos) break;
  }
  return width_of(shown);
}

}  // namespace rubato
