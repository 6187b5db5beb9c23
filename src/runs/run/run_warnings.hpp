#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rubato/loop/records.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "run_request.hpp"
#include "runs/config/values/trace_source.hpp"

namespace rubato {

// Warnings to a user whose run is valid, but may not be the one that they meant.

/// A warning that --cores has no effect; empty unless `steps` give the number of cores of every
/// step.
[[nodiscard]] std::optional<std::string> idle_cores(const RunSteps& steps,
                                                    const RunConfiguration& run);

/// A line for each option that has no effect, and one if OpenMP has bound the process to a CPU.
/// `redrawn` says whether progress is a line that is redrawn.
[[nodiscard]] std::vector<std::string> idle_arguments(const RunRequest& request,
                                                      const RunSteps& steps, bool redrawn);

/// A warning that the rule changes the given --lr although every step of the trace has the same
/// batch size; empty if it does not, if --ref-batch was given, too, or if the rule is the user's
/// own.
[[nodiscard]] std::optional<std::string> scaled_rate(const RunRequest& request,
                                                     const RunSteps& steps);

/// A line that says by how much the accuracy misses --target-accuracy; empty if it does not.
[[nodiscard]] std::optional<std::string> missed_target(const RunConfiguration& run,
                                                       const TrainResult& result);

}  // namespace rubato
