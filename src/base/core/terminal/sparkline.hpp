#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rubato {

/// A cell for each of `values`, the higher the larger its value is among them: from ▁ to █, or in
/// ASCII from _ to #. What is not finite is a blank; where all are the same they are in the middle.
[[nodiscard]] std::string sparkline(std::span<const double> values, bool utf8);

/// A bar as a thin line: `done` (0 to 1) of `width` cells, in halves of a cell, and what is left of
/// them. In ASCII they are progress_bar()'s.
struct ThinBar {
  std::string done;
  std::string left;
};
[[nodiscard]] ThinBar thin_bar(double done, int width, bool utf8);

/// A cell for each core: those that work, those that have nothing to do, and those that are not
/// there now, of which there are so many in all. Where there are more of them than `width`, a cell
/// stands for several, and none of the three is lost where there is room for it.
struct CoreCells {
  std::string busy;
  std::string idle;
  std::string absent;
};
[[nodiscard]] CoreCells core_cells(std::int64_t busy, std::int64_t cores, std::int64_t most,
                                   int width, bool utf8);

}  // namespace rubato
