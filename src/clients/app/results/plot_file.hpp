#pragma once

#include <filesystem>

#include "runs/recorded/plot.hpp"

namespace rubato::app {

/// Throws Error for a file that is neither FILE.svg nor FILE.png.
void require_picture_file(const std::filesystem::path& file);

/// Draws the plot into a file, as SVG or PNG depending on its name; an existing file is replaced.
/// Throws OutputError.
void write_picture(const Plot& plot, const std::filesystem::path& file);

}  // namespace rubato::app
