#include "app/wrapped.hpp"

namespace rubato::app {

std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t kLineWidth = 80;
  std::string lines;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (column > indent && column + 1 + word.size() > kLineWidth) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

}  // namespace rubato::app
