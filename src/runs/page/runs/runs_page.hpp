#pragma once

#include <span>

#include "runs/page/html/document.hpp"
#include "thinned_run.hpp"

namespace rubato::page {

/// The page of one run, or of several side by side.
[[nodiscard]] Document document_of_runs(std::span<const ThinnedRun> runs);

/// HTML that says how to reproduce a run, and what it was computed with.
[[nodiscard]] std::string reproduction_of(const ThinnedRun& run);

}  // namespace rubato::page
