#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "html.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

/// Maximum number of runs on a page; with more, it would not be readable.
inline constexpr std::size_t kMostRuns = 500;

/// Number of columns that each of `runs` runs has in its charts; even, as Buckets requires.
[[nodiscard]] std::size_t columns_of(std::size_t runs);

/// The page of one experiment, or of runs side by side. Throws Error for a folder that is neither,
/// for an experiment together with other folders, and for too many runs.
[[nodiscard]] Document document_of_folders(const std::vector<std::string>& folders);

/// The page of one run, or of several side by side.
[[nodiscard]] Document document_of_runs(std::span<const ThinnedRun> runs);

/// The beginning of the page of one run: what was trained, its results, and warnings.
[[nodiscard]] std::string head_of(const ThinnedRun& run);

/// HTML that says how to reproduce a run, and what it was computed with.
[[nodiscard]] std::string reproduction_of(const ThinnedRun& run);

}  // namespace rubato::page
