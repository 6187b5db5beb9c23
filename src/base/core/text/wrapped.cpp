#include "wrapped.hpp"

#include <optional>

namespace rubato {

namespace {

constexpr std::string_view kWhiteSpace = " \t\n";
// Marks after which a long word may be broken.
constexpr std::string_view kPunctuation = ",;:/";

// True for the continuation bytes of UTF-8, 10xxxxxx.
bool goes_on(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The number of bytes of `text` in its first `columns` columns.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t column = 0; end < text.size(); ++end) {
    if (!goes_on(text[end]) && column++ == columns) break;
  }
  return end;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(kWhiteSpace); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kWhiteSpace, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kWhiteSpace, end);
  }
  return words;
}

// Pieces of a word that may stand on different lines.
std::vector<std::string_view> pieces_of(std::string_view word) {
  std::vector<std::string_view> pieces;
  while (!word.empty()) {
    const std::size_t mark = word.find_first_of(kPunctuation);
    const std::size_t end = mark == std::string_view::npos ? word.size() : mark + 1;
    pieces.push_back(word.substr(0, end));
    word.remove_prefix(end);
  }
  return pieces;
}

// Position of the blank at which to break a line longer than `columns`; empty if it has no blank.
std::optional<std::size_t> break_of(std::string_view line, std::size_t columns) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = bytes_of(line, columns);
  std::optional<std::size_t> gap;
  std::optional<std::size_t> blank;
  for (std::size_t at = begin + 1; at < line.size(); ++at) {
    if (line[at] != ' ' || line[at - 1] == ' ') continue;
    // A blank beyond the end is better than none.
    if (at > end) return gap ? gap : blank ? blank : at;
    blank = at;
    if (line.substr(at, 2) == "  " && at > end / 2) gap = at;
  }
  return gap ? gap : blank;
}

void append_fitted(std::string& text, std::string_view line, std::size_t columns) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string hanging(std::min(indent + 2, columns / 2), ' ');
  std::string rest(line);
  while (width_of(rest) > columns) {
    const auto at = break_of(rest, columns);
    if (!at) break;
    const std::size_t next = rest.find_first_not_of(' ', *at);
    if (next == std::string::npos) break;
    text.append(rest, 0, *at);
    text += '\n';
    rest.replace(0, next, hanging);
  }
  text += rest;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), goes_on));
}

std::string wrapped(std::string_view text, std::size_t indent, LineWidth width) {
  std::string lines;
  std::size_t column = indent;
  for (const std::string_view word : words_of(text)) {
    if (column > indent && column + 1 + width_of(word) > width.prose()) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += width_of(word);
  }
  return lines;
}

std::string fitted(std::string_view text, LineWidth width) {
  if (width.columns == LineWidth::kUnlimited) return std::string(text);
  std::string lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.find_first_of("\r\x1b") == std::string_view::npos) {
      append_fitted(lines, line, width.columns);
    } else {
      lines += line;
    }
    if (end < text.size()) lines += '\n';
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> cell_lines(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines{""};
  const auto put = [&](std::string_view piece, std::string_view before) {
    if (lines.back().empty()) {
      lines.back() = piece;
    } else if (width_of(lines.back()) + before.size() + width_of(piece) <= columns) {
      lines.back() += std::string(before) + std::string(piece);
    } else {
      lines.emplace_back(piece);
    }
  };
  for (const std::string_view word : words_of(text)) {
    if (width_of(word) <= columns) {
      put(word, " ");
      continue;
    }
    std::string_view before = " ";
    for (std::string_view piece : pieces_of(word)) {
      while (width_of(piece) > columns) {
        const std::size_t bytes = bytes_of(piece, columns);
        put(piece.substr(0, bytes), before);
        piece.remove_prefix(bytes);
        before = "";
      }
      put(piece, before);
      before = "";
    }
  }
  return lines;
}

std::size_t least_width_of(std::string_view text) {
  std::size_t least = 0;
  for (const std::string_view word : words_of(text)) {
    for (const std::string_view piece : pieces_of(word)) least = std::max(least, width_of(piece));
  }
  return least;
}

}  // namespace rubato
