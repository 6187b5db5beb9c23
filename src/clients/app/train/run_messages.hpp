#pragma once

#include <optional>
#include <string>

#include <rubato/runs/records.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_folder.hpp>

#include "runs/config/values/trace_source.hpp"

// What `rubato train` says to people, but for its progress. Epochs and steps count from 1 here, as
// everywhere that people read or type them; files count from 0.

namespace rubato::app {

/// What will be trained.
[[nodiscard]] std::string opening(const RunConfiguration& run, const Workload& workload,
                                  const RunSteps& steps);
/// Where a run that has trained `result` goes on: from a checkpoint, or from its beginning.
[[nodiscard]] std::string resumption(const TrainResult& result,
                                     const std::optional<CheckpointFolder::Found>& from,
                                     const std::optional<std::filesystem::path>& kept_in);
/// What came out; where it is `verbose`, with what else the summary says of how.
[[nodiscard]] std::string closing(const RunSummary& summary, const Run& run, bool verbose);

/// Where the program does not compute as the libraries would by themselves; otherwise empty.
[[nodiscard]] std::string kernel_words();

}  // namespace rubato::app
