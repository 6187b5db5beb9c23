#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// Columns that `text` takes up on a terminal: one for each character of UTF-8.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// How long the lines of a text may be.
struct LineWidth {
  static constexpr std::size_t kUnlimited = std::string_view::npos;
  static constexpr std::size_t kProse = 80;

  /// As many as the terminal has; a file or a pipe takes lines as they come.
  std::size_t columns = kUnlimited;

  /// Of running text, which nobody reads in longer lines.
  [[nodiscard]] std::size_t prose() const { return std::min(columns, kProse); }
};

/// The words of `text`, which white space separates, in lines of at most LineWidth::prose() columns
/// where no word is longer. What stands before the text on its first line has `indent` columns;
/// every line after that is indented by as many blanks. No line ends with a blank, and the last has
/// no '\n'.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent, LineWidth width = {});

/// `text` with its lines as they are, but for those that are too long: they go on, indented by two
/// more, where they have a gap of several blanks, or else between two words. A word is never
/// broken, nor a line with control characters, which is a drawing.
[[nodiscard]] std::string fitted(std::string_view text, LineWidth width);

/// Lines of at most `columns` columns with the words of `text`, for a cell of a table: a word that
/// is longer is broken behind a punctuation mark, or else where it has to be. At least one line.
[[nodiscard]] std::vector<std::string> cell_lines(std::string_view text, std::size_t columns);

/// The columns of the widest part of `text` that cell_lines() breaks only where it has to.
[[nodiscard]] std::size_t least_width_of(std::string_view text);

}  // namespace rubato
