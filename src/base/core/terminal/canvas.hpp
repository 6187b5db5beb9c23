#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "paint.hpp"

namespace rubato {

/// A pen of a canvas: its colour, and its character for Cells::marks.
struct Pen {
  Ink ink = Ink::plain;
  char mark = '*';
};

/// A line drawing in the character cells of a terminal. In braille, a cell has two columns of four
/// dots; otherwise it shows the character of the last line through it.
class Canvas {
 public:
  enum class Cells { braille, marks };

  Canvas(int columns, int rows, Cells cells);

  /// Draws a line between two points in fractions of the canvas: (0, 0) is bottom left, (1, 1) top
  /// right. Parts outside are clipped.
  void line(double x0, double y0, double x1, double y1, const Pen& pen);
  /// A row of cells, counted from the top, without trailing blanks.
  [[nodiscard]] std::string row(int index, bool colours) const;

 private:
  struct Cell {
    std::uint8_t dots = 0;
    Pen pen{};
  };

  void dot(std::int64_t x, std::int64_t y, const Pen& pen);

  int columns_;
  int rows_;
  Cells cells_;
  std::vector<Cell> all_;
};

}  // namespace rubato
