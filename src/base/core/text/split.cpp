#include "split.hpp"

#include <algorithm>
#include <cstddef>

namespace rubato {

namespace {

// The name in "label=species"; empty if the part is not an argument.
std::string_view argument_name(std::string_view part) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz-";
  const std::size_t end = part.find('=');
  const std::string_view name = part.substr(0, end);
  const bool named =
      end != std::string_view::npos && name.find_first_not_of(kLetters) == std::string_view::npos;
  return named ? name : std::string_view();
}

}  // namespace

std::vector<std::string_view> split_at(std::string_view text, char mark) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

std::size_t arguments_begin(std::string_view text, std::span<const std::string_view> lists) {
  std::size_t begin = text.size();
  bool has_values = false;
  for (std::size_t end = text.size();;) {
    const std::size_t comma = text.substr(0, end).rfind(',');
    if (comma == std::string_view::npos) return begin;
    const std::string_view name = argument_name(text.substr(comma + 1, end - comma - 1));
    const bool is_list = std::find(lists.begin(), lists.end(), name) != lists.end();
    if (!name.empty() && has_values && !is_list) return begin;
    if (!name.empty()) begin = comma;
    has_values = name.empty();
    end = comma;
  }
}

}  // namespace rubato
