#include "core/wrapped.hpp"

#include <algorithm>

namespace rubato {

std::size_t width_of(std::string_view text) {
  // A character is one byte and those that continue it, 10xxxxxx.
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t kLineWidth = 80;
  constexpr std::string_view kWhiteSpace = " \t\n";
  std::string lines;
  std::size_t column = indent;
  for (std::size_t begin = text.find_first_not_of(kWhiteSpace); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kWhiteSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t width = width_of(word);
    if (column > indent && column + 1 + width > kLineWidth) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += width;
    begin = text.find_first_not_of(kWhiteSpace, end);
  }
  return lines;
}

}  // namespace rubato
