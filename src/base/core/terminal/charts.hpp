#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "terminal.hpp"

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

/// One cell for each of `values`, its height relative to the others: from ▁ to █, or from _ to # in
/// ASCII. Values that are not finite are blanks; equal values are all in the middle.
[[nodiscard]] std::string sparkline(std::span<const double> values, bool utf8);

/// A bar as a thin line: `done` (0 to 1) of `width` cells, in halves of a cell, and the rest. ASCII
/// bars are those of progress_bar().
struct ThinBar {
  std::string done;
  std::string left;
};
[[nodiscard]] ThinBar thin_bar(double done, int width, bool utf8);

/// One cell for each core: busy, idle, and absent ones up to the number `most`. With more cores
/// than `width`, a cell stands for several; each of the three kinds is still shown if there is
/// room.
struct CoreCells {
  std::string busy;
  std::string idle;
  std::string absent;
};
[[nodiscard]] CoreCells core_cells(std::int64_t busy, std::int64_t cores, std::int64_t most,
                                   int width, bool utf8);

}  // namespace rubato
