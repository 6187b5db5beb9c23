#include "split.hpp"

#include <algorithm>
#include <cstddef>

namespace rubato {

std::vector<std::string_view> split_at(std::string_view text, char mark) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

}  // namespace rubato
