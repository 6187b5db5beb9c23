#pragma once

#include <filesystem>

#include "thinned_run.hpp"

namespace rubato::page {

/// Reads the answer of `rubato whatif`, if the file exists, as the charts and the chapter of a run.
/// An answer that cannot be read is a warning of the run.
void read_whatif(const std::filesystem::path& file, ThinnedRun& run);

}  // namespace rubato::page
