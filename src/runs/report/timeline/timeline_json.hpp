#pragma once

#include <string>
#include <string_view>

#include "timeline.hpp"

namespace rubato {

inline constexpr std::string_view kTimelineFile = "timeline.json";

// Process ids in the file, and the prefix of the names of steps.
inline constexpr int kTrainingProcess = 1;
inline constexpr int kThreadsProcess = 2;
inline constexpr int kCoresProcess = 3;
inline constexpr std::string_view kStepName = "step ";

/// Trace events in the JSON object format, which Perfetto (ui.perfetto.dev) and chrome://tracing
/// open; times are in microseconds since the first step began.
///
/// Three processes have the lanes: one lane for the steps and one for other events (tests,
/// checkpoints, deaths of cores); one for each thread, with gaps shown as waiting; one for each
/// core. Flows lead from the point where a core left its sum to the point where another one took
/// it. The activities are those of kActivities; "wait" is the time of a thread in a step without
/// any of them. Steps count from 1, as for --timeline and on pages.
[[nodiscard]] std::string timeline_json(const RecordedTimeline& timeline);

}  // namespace rubato
