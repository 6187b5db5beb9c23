#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/base/index.hpp>
#include <rubato/loop/observer.hpp>
#include <rubato/loop/reducer.hpp>
#include <rubato/loop/trainer.hpp>

namespace rubato {

/// A meeting of two sums, and the step in which it happened.
struct MeetingOfStep {
  StepIndex step{};
  Meeting meeting{};
};

/// An event between the activities of steps: a checkpoint, or the death of a core if `begin` equals
/// `end`.
struct TimelineNote {
  std::string text{};
  Span::Moment begin{};
  Span::Moment end{};
};

/// The contents of a Timeline.
struct RecordedTimeline {
  /// Spans of each thread, in the order in which they ended.
  std::vector<std::vector<Span>> spans{};
  std::vector<MeetingOfStep> meetings{};
  std::vector<TimelineNote> notes{};
  /// Whether there was room for all steps that were requested.
  bool whole = true;
  /// Index of the host whose threads these are, and the number of hosts.
  int host = 0;
  int hosts = 1;
};

/// Records the activities of the threads in some of a run's steps, and writes them to the run
/// folder as trace events (timeline_json()).
///
/// The listeners take no locks and do not allocate during training: there is room for a fixed
/// number of spans. If there are more, the last steps are left out, each as a whole.
///
/// Thread safety: as required by OnSpan and OnMeeting. Each thread writes only to its own lane and
/// to the elements of meetings_ whose numbers it has drawn; both are read only after the tasks of a
/// step have ended.
class Timeline final : public Observer {
 public:
  /// Default limit of spans: about 25 MB of trace events.
  static constexpr std::size_t kMostSpans = 100'000;

  /// Records the steps from `first` to `last`; the run may end before `last`.
  Timeline(std::filesystem::path folder, StepIndex first, StepIndex last,
           std::size_t most_spans = kMostSpans);

  // Listeners for TrainOptions::on_span and on_meeting.
  void take(const Span& span);
  void take(StepIndex step, const Meeting& meeting);

  /// Records an event of the run, unless no step has been recorded before it or the file has been
  /// written.
  void note(std::string_view text, Span::Moment begin, Span::Moment end);

  void on_added(Training& training) override;
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  /// Writes the file in the first step after the last requested one, so that events after that step
  /// are included. Throws OutputError.
  void on_step(Training& training, const StepRecord& step) override;

  /// Writes the file unless it has been written or no step was recorded. Its name is
  /// `timeline.json`, or `timeline-2.json` and so on if earlier processes of the run have left such
  /// files. Throws OutputError.
  void write();

 private:
  // Each thread has a lane, aligned so that lanes share no cache lines.
  struct alignas(128) Lane {
    std::vector<Span> spans{};
    // Step of the first span that there was no room for.
    StepIndex cut{std::numeric_limits<std::int64_t>::max()};
  };

  [[nodiscard]] bool wants(StepIndex step) const { return step >= first_ && step <= last_; }
  [[nodiscard]] RecordedTimeline recorded() const;

  std::filesystem::path folder_;
  StepIndex first_;
  StepIndex last_;
  std::size_t most_spans_;
  std::vector<Lane> lanes_{};
  // Number of meetings reported so far; may exceed the room in meetings_.
  std::atomic<std::size_t> meetings_reported_{0};
  std::vector<MeetingOfStep> meetings_{};
  std::vector<TimelineNote> notes_{};
  // Values of RecordedTimeline::host and hosts.
  int host_ = 0;
  int hosts_ = 1;
  bool written_ = false;
};

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
/// any of them. Steps count from 1, as for --timeline and on pages. The timeline must have a span
/// of a step; Timeline writes no file without one.
[[nodiscard]] std::string timeline_json(const RecordedTimeline& timeline);

}  // namespace rubato
