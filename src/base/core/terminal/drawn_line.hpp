#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// One of the things that a line says, and how much it is worth.
struct LineField {
  std::string text;
  int worth = 0;
};
/// The fields with blanks between them, without those worth least where the line would be longer
/// than `columns`: nothing is cut in its middle.
[[nodiscard]] std::string fitting_line(std::vector<LineField> fields, int columns);
/// The bar of a line: `done` (0 to 1) of `width` cells, in eighths of a cell where `utf8` allows.
[[nodiscard]] std::string progress_bar(double done, int width, bool utf8);
/// fitting_line(), and behind the first field, which is worth most, a progress_bar() of `done`, of
/// up to 30 cells, where there is room for `narrowest`.
[[nodiscard]] std::string line_with_bar(std::vector<LineField> fields, int columns, double done,
                                        int narrowest);

/// How long a line on the terminal behind `descriptor` may be that is drawn over: a column stays
/// free, as a full line would wrap on some. 79 where it does not say how many it has.
[[nodiscard]] int drawable_columns(int descriptor);

/// A line of a terminal that is drawn over and over.
class DrawnLine {
 public:
  /// `write` is called with what the terminal is to be sent.
  explicit DrawnLine(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  /// Draws `text`, without line ends, where the line is.
  void draw(std::string_view text);
  /// Takes away what was drawn, so that something else may be printed there.
  void clear();
  /// Whether there is something to take away.
  [[nodiscard]] bool drawn() const { return drawn_; }

 private:
  std::function<void(std::string_view)> write_;
  bool drawn_ = false;
};

}  // namespace rubato
