#include "paint.hpp"

#include <array>

#include "base/core/text/wrapped.hpp"

namespace rubato {

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
