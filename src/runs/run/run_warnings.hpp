#pragma once

#include <optional>
#include <string>
#include <vector>

#include <rubato/loop/records.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "run_request.hpp"
#include "runs/config/values/trace_source.hpp"

// What a user should know of a run that is the one they meant.

namespace rubato {

/// Where `steps` say for every step how many cores there are, what --cores for others comes to.
[[nodiscard]] std::optional<std::string> idle_cores(const RunSteps& steps,
                                                    const RunConfiguration& run);

/// A line for each option that does nothing, and one where OpenMP has bound the process to a CPU.
/// `redrawn` says whether progress is a line that is drawn over.
[[nodiscard]] std::vector<std::string> idle_arguments(const RunRequest& request,
                                                      const RunSteps& steps, bool redrawn);

/// That the rule makes another rate of the given --lr, though every step of the trace has the same
/// batch size; empty where it does not, or --ref-batch was given, too, or the rule is a user's own.
[[nodiscard]] std::optional<std::string> scaled_rate(const RunRequest& request,
                                                     const RunSteps& steps);

/// By how much the accuracy misses --target-accuracy; empty where it does not.
[[nodiscard]] std::optional<std::string> missed_target(const RunConfiguration& run,
                                                       const TrainResult& result);

}  // namespace rubato
