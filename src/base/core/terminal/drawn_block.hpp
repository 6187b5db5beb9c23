#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// Lines of a terminal that are redrawn in place. The cursor rests below them, at the beginning of
/// a line, and is never hidden: the terminal is left intact whenever the program ends between two
/// drawings.
class DrawnBlock {
 public:
  /// `write` is called once for each drawing, with the bytes for the terminal.
  explicit DrawnBlock(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  /// Draws `lines`, which may be painted(), over those drawn before. `columns` and `rows` are the
  /// terminal's current size. If it has become narrower, the lines before now occupy more rows; if
  /// it has become lower, some have scrolled out at its top, and return when it grows.
  void draw(std::vector<std::string> lines, int columns,
            std::size_t rows = std::numeric_limits<std::size_t>::max());
  /// Erases what was drawn, so that something else can be printed there.
  void clear(int columns);
  /// Keeps what was drawn, because something else was printed below it.
  void leave() {
    lines_.clear();
    rows_above_ = 0;
  }
  /// True if there is something to erase.
  [[nodiscard]] bool drawn() const { return !lines_.empty(); }

 private:
  [[nodiscard]] std::size_t rows_of_lines(int columns) const;

  std::function<void(std::string_view)> write_;
  // The lines on the terminal.
  std::vector<std::string> lines_;
  // Rows of earlier drawings that scrolled out at the top when the terminal became lower.
  std::size_t rows_above_ = 0;
};

}  // namespace rubato
