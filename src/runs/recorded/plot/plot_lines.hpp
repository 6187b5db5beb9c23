#pragma once

#include <string>
#include <vector>

#include "plot.hpp"
#include "runs/report/view/run_view.hpp"

namespace rubato {

/// A plot for the terminal, as wide as it is, with so many rows for the curves: axes with numbers,
/// and a line for each of several curves that says which it is. Curves are braille where there is
/// UTF-8 and they can be told apart, by colours or as there is one alone; else characters, which
/// are different for up to 22 of them.
[[nodiscard]] std::vector<std::string> plot_lines(const Plot& plot, const ViewStyle& style,
                                                  int rows);

}  // namespace rubato
