#pragma once

#include <string>

#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

#include "thinned_run.hpp"

namespace rubato::page {

// Parts of other pages, such as the output of a cell in a notebook: the head of a page and its
// first charts, drawn as SVG. A part has no scripts, loads nothing, and its styles apply to nothing
// outside of it. It is light or dark as the notebook around it is, or else as the reader prefers.

/// Number of columns of a run in a part, for read_run().
inline constexpr std::size_t kColumnsOfPart = 96;

[[nodiscard]] std::string part_of(const ThinnedRun& run);
/// The part of the run or the experiment in a folder. Throws Error for any other folder.
[[nodiscard]] std::string part_of_folder(const std::string& folder);
/// The batch sizes of a trace, and its cores if it has some, over its steps.
[[nodiscard]] std::string part_of(const Trace& trace);
/// The devices over the hours of an availability.
[[nodiscard]] std::string part_of(const Availability& availability);

}  // namespace rubato::page
