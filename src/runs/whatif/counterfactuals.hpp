#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/runs/workload.hpp>

#include "recorded_training.hpp"
#include "run_events.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/run_history.hpp"
#include "whatif.hpp"

namespace rubato {

/// A counterfactual with all that its fork needs.
struct PlannedCounterfactual {
  Counterfactual counterfactual{};
  RunHistory history;
  /// Its steps; empty for those of the run's trace.
  std::optional<RunSteps> schedule{};
  /// The steps and samples that its fork trains, and the epochs that it evaluates.
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::int64_t epochs = 0;
};

/// The positions of the events that the text of WhatIfRequest::without names: "3,7", "@41". Throws
/// Error.
[[nodiscard]] std::vector<std::size_t> parse_events(const std::string& text,
                                                    const std::vector<RunEvent>& events);

/// All counterfactuals that a request asks for. Throws Error if there are none.
[[nodiscard]] std::vector<PlannedCounterfactual> planned_counterfactuals(
    const WhatIfRequest& request, const RunHistory& history, const RunEvents& events,
    const RecordedTraining& training, const Workload& workload);

}  // namespace rubato
