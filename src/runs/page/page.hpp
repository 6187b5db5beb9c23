#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runs/page/html/document.hpp"

namespace rubato::page {

/// Maximum number of runs on a page; with more, it would not be readable.
inline constexpr std::size_t kMostRuns = 500;

/// Number of columns that each of `runs` runs has in its charts; even, as Buckets requires.
[[nodiscard]] std::size_t columns_of(std::size_t runs);

/// The page of one experiment, or of runs side by side. Throws Error for a folder that is neither,
/// for an experiment together with other folders, and for too many runs.
[[nodiscard]] Document document_of_folders(const std::vector<std::string>& folders);

}  // namespace rubato::page
