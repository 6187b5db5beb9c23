#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runs/page/html/document.hpp"

namespace rubato::page {

/// More runs side by side would be a page that nobody reads.
inline constexpr std::size_t kMostRuns = 500;

/// How many columns each of so many runs has in its charts: even, as Buckets needs it.
[[nodiscard]] std::size_t columns_of(std::size_t runs);

/// The page of what `folders` hold: one experiment, or runs side by side. Throws Error for a folder
/// that is neither, an experiment that is not alone, and too many runs.
[[nodiscard]] Document document_of_folders(const std::vector<std::string>& folders);

}  // namespace rubato::page
