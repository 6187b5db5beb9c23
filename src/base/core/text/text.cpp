// This file has three groups of functions: they split text, quote it for terminals, shells and
// Python, and fit it into lines. Widths are columns of a terminal, not bytes or characters:
// first_letter() decodes one character of UTF-8 and asks wcwidth() for its columns, in the locale
// C.UTF-8 whatever the locale of the program is. Invalid UTF-8 is never an error, because texts
// come from files and command lines, and messages about these files quote them.

#include "text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cwchar>
#include <optional>

#include <fmt/format.h>
#include <locale.h>

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

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return lower;
}

std::vector<std::string_view> split_at(std::string_view text, char mark) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

std::vector<std::string> split_list(std::string_view text,
                                    bool (*continues)(std::string_view, std::string_view)) {
  std::vector<std::string> values;
  for (const std::string_view piece : split_at(text, ',')) {
    if (!values.empty() && continues(values.back(), piece)) {
      values.back().append(",").append(piece);
    } else {
      values.emplace_back(piece);
    }
  }
  return values;
}

bool is_argument(std::string_view piece) {
  const std::size_t equals = piece.find('=');
  return equals != std::string_view::npos &&
         piece.substr(0, equals).find(':') == std::string_view::npos;
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

namespace {

// True for the continuation bytes of UTF-8, 10xxxxxx.
bool goes_on(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// A character and the columns that it occupies: none for a mark that is set on the one before it,
// two for those of East Asia and most pictures.
struct Letter {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

// The columns of a character beyond ASCII. The C library knows them in a locale of UTF-8, whatever
// that of the program is.
std::size_t columns_of(wchar_t character) {
  static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t before = uselocale(utf8);
  const int columns = wcwidth(character);
  uselocale(before);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

// The first character of a text that is not empty. Bytes that are not UTF-8 occupy a column, with
// all continuation bytes after them.
Letter first_letter(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  Letter letter;
  while (letter.bytes < text.size() && goes_on(text[letter.bytes])) ++letter.bytes;
  if (lead < 0x80) return letter;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (letter.bytes != length) return letter;
  std::uint32_t code = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    code = code << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  letter.columns = columns_of(static_cast<wchar_t>(code));
  return letter;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    columns += letter.columns;
    text.remove_prefix(letter.bytes);
  }
  return columns;
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  while (end < text.size()) {
    const Letter letter = first_letter(text.substr(end));
    if (letter.columns > columns) break;
    columns -= letter.columns;
    end += letter.bytes;
  }
  return text.substr(0, end);
}

std::string_view last_columns(std::string_view text, std::size_t columns) {
  std::size_t width = width_of(text);
  // A mark goes with the letter before it.
  while (!text.empty() && (width > columns || first_letter(text).columns == 0)) {
    const Letter letter = first_letter(text);
    width -= letter.columns;
    text.remove_prefix(letter.bytes);
  }
  return text;
}

std::string padded_to(std::string_view text, std::size_t columns) {
  std::string padded(text);
  padded.append(columns - std::min(columns, width_of(text)), ' ');
  return padded;
}

std::string short_line(std::string_view text) {
  constexpr std::size_t kMost = 80;
  constexpr std::string_view kLeftOut = "...";
  // Only so much of either end is ever shown, in UTF-8 of up to four bytes a letter.
  constexpr std::size_t kBytes = 4 * kMost;
  if (text.size() <= kBytes && width_of(text) <= kMost) {
    std::string line = printable(text);
    std::ranges::replace(line, '\n', '?');
    return line;
  }
  constexpr std::size_t kKept = (kMost - kLeftOut.size()) / 2;
  const std::string_view head = first_columns(text.substr(0, kBytes), kKept);
  text.remove_prefix(head.size());
  if (text.size() > kBytes) text.remove_prefix(text.size() - kBytes);
  return short_line(head) + std::string(kLeftOut) + short_line(last_columns(text, kKept));
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

namespace {

constexpr std::string_view kWhiteSpace = " \t\n";
// Marks after which a long word may be broken.
constexpr std::string_view kPunctuation = ",;:/";

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
  const std::size_t end = first_columns(line, columns).size();
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
        // A character that is wider than the cell has a line of its own.
        std::string_view part = first_columns(piece, columns);
        if (part.empty()) part = first_columns(piece, first_letter(piece).columns);
        put(part, before);
        piece.remove_prefix(part.size());
        before = "";
      }
      if (!piece.empty()) put(piece, before);
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
