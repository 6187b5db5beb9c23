#pragma once

#include <span>

#include "recorded_run.hpp"
#include "runs/page/html/document.hpp"

namespace rubato::page {

/// The page of one run, or of several side by side.
[[nodiscard]] Document document_of_runs(std::span<const RecordedRun> runs);

/// What reproduces a run and what it was computed with, as HTML.
[[nodiscard]] std::string reproduction_of(const RecordedRun& run);

}  // namespace rubato::page
