#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// Columns that `text` occupies on a terminal: one for each character of UTF-8.
[[nodiscard]] std::size_t width_of(std::string_view text);

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
