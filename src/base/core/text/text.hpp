#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rubato {

/// The pieces of `text` between the marks, as views into it; a text without marks is one piece,
/// which may be empty.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char mark);

/// `text` without these characters around it.
[[nodiscard]] inline std::string_view trimmed(std::string_view text, std::string_view characters) {
  text.remove_prefix(std::min(text.find_first_not_of(characters), text.size()));
  return text.substr(0, text.find_last_not_of(characters) + 1);
}

/// The number that all of `text` writes; empty if it writes none, or one that the type cannot hold.
template <class Number>
[[nodiscard]] std::optional<Number> parsed_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `text` in lower case; letters outside of ASCII stay as they are.
[[nodiscard]] std::string lower_case(std::string_view text);

/// The first `most` names with commas between them, and how many there are besides: "a, b and 7
/// more".
template <class Names>
[[nodiscard]] std::string first_names(const Names& names, std::size_t most = 8) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string_view name : names) {
    if (shown == most) return text + " and " + std::to_string(names.size() - shown) + " more";
    text.append(shown++ == 0 ? "" : ", ").append(name);
  }
  return text;
}

/// The values of a list with commas between them. `continues` says whether a piece belongs to the
/// value before it, such as "smoothing=0.9" to "adascale:ramp=3".
[[nodiscard]] std::vector<std::string> split_list(std::string_view text,
                                                  bool (*continues)(std::string_view value,
                                                                    std::string_view piece));
/// Returns whether a piece is an argument such as "smoothing=0.9", without a name and a colon
/// before it.
[[nodiscard]] bool is_argument(std::string_view piece);

/// Position of the comma before the arguments of "PATH,NAME=VALUE,...", or of the end. Paths may
/// contain commas, too; only text after a comma that looks like "NAME=" is an argument. `lists`
/// names the arguments that take several values separated by commas.
[[nodiscard]] std::size_t arguments_begin(std::string_view text,
                                          std::span<const std::string_view> lists = {});

/// The text with '?' instead of each control character except line ends, so that quotations from a
/// file cannot steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// Returns the text as a message quotes what a user has typed: one line of at most 80 columns, with
/// '?' for each control character and line end, and without the middle of a longer text
/// ("begin...end").
[[nodiscard]] std::string short_line(std::string_view text);

/// The text as one word for a POSIX shell: unchanged if no character of it has a meaning there,
/// else in quotes. Control characters, which printable() would change, are written in the form
/// $'\n' of bash, zsh and ksh.
[[nodiscard]] std::string shell_quoted(std::string_view text);

/// The text as a string literal of Python, in single quotes.
[[nodiscard]] std::string python_quoted(std::string_view text);

/// Columns that `text` occupies on a terminal: of the characters of UTF-8, those of East Asia and
/// most pictures occupy two, and combining marks none.
[[nodiscard]] std::size_t width_of(std::string_view text);
/// Returns as much of the beginning, or of the end, of `text` as fits in `columns` columns. A mark
/// stays with its letter.
[[nodiscard]] std::string_view first_columns(std::string_view text, std::size_t columns);
[[nodiscard]] std::string_view last_columns(std::string_view text, std::size_t columns);
/// `text` with blanks after it, up to `columns` columns.
[[nodiscard]] std::string padded_to(std::string_view text, std::size_t columns);

/// The longest lines of a text.
struct LineWidth {
  static constexpr std::size_t kUnlimited = std::string_view::npos;
  static constexpr std::size_t kProse = 80;

  /// The terminal's width; lines of a file or a pipe are unlimited.
  std::size_t columns = kUnlimited;

  /// The width of running text, which is hard to read in longer lines.
  [[nodiscard]] std::size_t prose() const { return std::min(columns, kProse); }
};

/// The words of `text` in lines of at most LineWidth::prose() columns, unless a word is longer. The
/// first line continues after `indent` columns of other text; later lines are indented by as many
/// blanks. No line ends with a blank, and the last has no '\n'.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, LineWidth width = {});

/// `text` with long lines broken at a gap of several blanks or else between words, and continued
/// two columns further in. Other lines, words, and lines with control characters (drawings) are
/// unchanged.
[[nodiscard]] std::string fitted(std::string_view text, LineWidth width);

/// The words of `text` in lines of at most `columns` columns, for a cell of a table. A longer word
/// is broken after a punctuation mark, or else wherever necessary. The result has at least one
/// line.
[[nodiscard]] std::vector<std::string> cell_lines(std::string_view text, std::size_t columns);

/// The smallest width at which cell_lines() breaks words only after punctuation marks.
[[nodiscard]] std::size_t least_width_of(std::string_view text);

}  // namespace rubato
