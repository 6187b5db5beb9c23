#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runs/recorded/plot.hpp"

namespace rubato::app {

/// The type of the picture that a file's name ends with. Throws Error if it is none.
[[nodiscard]] PlotForm::Type picture_type(const std::filesystem::path& file);

/// The form of a plot on stdout. It leaves some rows of a terminal to what is above it; unless it
/// `fits_terminal`, it is that for a file.
[[nodiscard]] PlotForm terminal_form(bool fits_terminal = true);

/// The text that gnuplot draws by a script. Its messages go to stderr. Throws Error if gnuplot is
/// not installed, and OutputError if it fails.
[[nodiscard]] std::string drawn_by_gnuplot(const std::string& script);

/// Prints a drawing of characters to stdout.
void print_drawing(std::string_view drawn);

}  // namespace rubato::app
