#pragma once

#include <optional>
#include <string>

#include <rubato/runs/records.hpp>
#include <rubato/runs/run.hpp>
#include <rubato/runs/run_folder.hpp>

#include "runs/config/values/trace_source.hpp"

namespace rubato::app {

// The messages of `rubato train`, except its progress. Epochs and steps count from 1 here, as
// everywhere that people read or type them; files count from 0.

/// Says what will be trained.
[[nodiscard]] std::string opening(const RunConfiguration& run, const Workload& workload,
                                  const RunSteps& steps);
/// Says where a run that has trained `result` continues: from a checkpoint, or from its beginning.
[[nodiscard]] std::string resumption(const TrainResult& result,
                                     const std::optional<CheckpointFolder::Found>& from,
                                     const std::optional<std::filesystem::path>& kept_in);
/// Says what was trained; with `verbose`, also what the summary has about how.
[[nodiscard]] std::string closing(const RunSummary& summary, const Run& run, bool verbose);

/// Says which kernels were chosen for the libraries; empty if they chose by themselves.
[[nodiscard]] std::string kernel_words();

}  // namespace rubato::app
