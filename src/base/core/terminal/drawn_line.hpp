#pragma once

#include <functional>
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

}  // namespace rubato
