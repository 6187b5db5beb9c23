#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "paint.hpp"

namespace rubato {

/// A pen of a canvas: its colour, and its character where lines are characters.
struct Pen {
  Ink ink = Ink::plain;
  char mark = '*';
};

/// Lines in character cells of a terminal. In braille a cell has two dots beside each other and
/// four above each other; else it is a character, that of the last line through it.
class Canvas {
 public:
  enum class Cells { braille, marks };

  Canvas(int columns, int rows, Cells cells);

  /// From one place to another, in shares of the canvas: 0 is the left or the bottom, 1 the right
  /// or the top. What is outside is cut off.
  void line(double x0, double y0, double x1, double y1, const Pen& pen);
  /// From the top; without blanks at its end.
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
