#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "html/document.hpp"

namespace rubato::page {

/// More runs side by side would be a page that nobody reads.
inline constexpr std::size_t kMostRuns = 500;

/// The page of what `folders` hold: one experiment, or runs side by side. Throws Error for a folder
/// that is neither, an experiment that is not alone, and too many runs.
[[nodiscard]] Document document_of(const std::vector<std::string>& folders);

}  // namespace rubato::page
