#pragma once

#include <string>
#include <vector>

#include "plot.hpp"
#include "runs/report/view/run_view.hpp"

namespace rubato {

/// A plot as lines for a terminal, with `rows` rows for the curves: axes with numbers, and a legend
/// if there are several curves. Curves consist of braille dots if the terminal has UTF-8 and they
/// can be distinguished, by colour or because there is only one; otherwise of characters, which
/// differ for up to 22 curves.
[[nodiscard]] std::vector<std::string> plot_lines(const Plot& plot, const ViewStyle& style,
                                                  int rows);

}  // namespace rubato
