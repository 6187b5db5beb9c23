#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// Lines of a terminal that are drawn over and over. The cursor rests below them, at the beginning
/// of a line, and is never hidden: whatever ends the program, at whatever moment between two
/// drawings, leaves the terminal as it should be.
class DrawnBlock {
 public:
  /// `write` is called once for each drawing, with what the terminal is to be sent.
  explicit DrawnBlock(std::function<void(std::string_view)> write) : write_(std::move(write)) {}

  /// Draws `lines`, which may be painted(), in the place of those drawn before. The terminal has
  /// so many columns and rows now. Where it had more columns, the lines before take up more rows by
  /// now; where it had more rows, some of them have left its top, and come back with the rows.
  void draw(std::vector<std::string> lines, int columns,
            std::size_t rows = std::numeric_limits<std::size_t>::max());
  /// Takes away what was drawn, so that something else may be printed there.
  void clear(int columns);
  /// What was drawn stays: there is something else below it now.
  void leave() {
    lines_.clear();
    rows_above_ = 0;
  }
  /// Whether there is something to take away.
  [[nodiscard]] bool drawn() const { return !lines_.empty(); }

 private:
  [[nodiscard]] std::size_t rows_of_lines(int columns) const;

  std::function<void(std::string_view)> write_;
  // As they are on the terminal.
  std::vector<std::string> lines_;
  // Rows of earlier drawings that have left the top of a terminal that became too low for them.
  std::size_t rows_above_ = 0;
};

}  // namespace rubato
