#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// A piece of information in a line; those of least `worth` are dropped first.
struct LineField {
  std::string text;
  int worth = 0;
};
/// The fields separated by blanks, dropping whole fields of least worth until the line fits into
/// `columns`.
[[nodiscard]] std::string fitting_line(std::vector<LineField> fields, int columns);
/// A bar of which `done` (0 to 1) of `width` cells is full, in eighths of a cell if `utf8`.
[[nodiscard]] std::string progress_bar(double done, int width, bool utf8);
/// fitting_line() with a progress_bar() of up to 30 cells behind the first field, which must be
/// worth most, if there is room for at least `narrowest` cells.
[[nodiscard]] std::string line_with_bar(std::vector<LineField> fields, int columns, double done,
                                        int narrowest);

/// The longest line to redraw in place on the terminal behind `descriptor`: one column less than it
/// has, because some terminals wrap a full line. 79 if its width is unknown.
[[nodiscard]] int drawable_columns(int descriptor);

/// A line of a terminal that is redrawn in place.
class DrawnLine {
 public:
  /// `write` is called with the bytes for the terminal.
  explicit DrawnLine(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  /// Draws `text`, without line ends, over the line drawn before.
  void draw(std::string_view text);
  /// Erases what was drawn, so that something else can be printed there.
  void clear();
  /// True if there is something to erase.
  [[nodiscard]] bool drawn() const { return drawn_; }

 private:
  std::function<void(std::string_view)> write_;
  bool drawn_ = false;
};

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
