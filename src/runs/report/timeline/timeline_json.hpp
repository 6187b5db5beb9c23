#pragma once

#include <string>
#include <string_view>

#include "timeline.hpp"

namespace rubato {

inline constexpr std::string_view kTimelineFile = "timeline.json";

// What its processes are called by, and the names of its steps begin with.
inline constexpr int kTrainingProcess = 1;
inline constexpr int kThreadsProcess = 2;
inline constexpr int kCoresProcess = 3;
inline constexpr std::string_view kStepName = "step ";

/// Trace events in the JSON object format, which Perfetto (ui.perfetto.dev) and chrome://tracing
/// open; times are microseconds since the first of them.
///
/// Three processes have a lane each for: the steps, and what else there was (tests, checkpoints,
/// cores that died); each thread, with gaps as waiting; each core. Flows lead from where a core
/// left its sum to where another one took it. The recorded activities are those of kActivities;
/// "wait" is what a thread does in a step when it does nothing of that. Steps count from 1, as for
/// --timeline and on pages.
[[nodiscard]] std::string timeline_json(const RecordedTimeline& timeline);

}  // namespace rubato
