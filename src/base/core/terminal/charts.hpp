#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rubato {

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
