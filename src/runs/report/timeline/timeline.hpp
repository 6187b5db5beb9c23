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

/// A meeting and the step that it was in.
struct MeetingOfStep {
  StepIndex step{};
  Meeting meeting{};
};

/// Something besides the steps that happened in training: a checkpoint; where `begin` is `end`, the
/// death of a core.
struct TimelineNote {
  std::string text{};
  Span::Moment begin{};
  Span::Moment end{};
};

/// What a Timeline has recorded.
struct RecordedTimeline {
  /// By thread, in the order in which they ended.
  std::vector<std::vector<Span>> spans{};
  std::vector<MeetingOfStep> meetings{};
  std::vector<TimelineNote> notes{};
  /// Whether there was room for all that was wanted.
  bool whole = true;
  /// The host whose threads these are, from 0, and how many there were.
  int host = 0;
  int hosts = 1;
};

/// Records what the threads do in some of a run's steps, and writes it to the run folder as trace
/// events (timeline_json()).
///
/// Its listeners take no lock and allocate nothing in training: there is room for a fixed number of
/// spans. Where they are more, the last steps are left out, each as a whole.
///
/// Thread safety: that of OnSpan and OnMeeting. Each thread writes what is its own; all of it is
/// read when the tasks of a step are done.
class Timeline final : public Observer {
 public:
  /// About 25 MB of trace events.
  static constexpr std::size_t kMostSpans = 100'000;

  /// Of the steps from `first` to `last`, which may come later than the run ends.
  Timeline(std::filesystem::path folder, StepIndex first, StepIndex last,
           std::size_t most_spans = kMostSpans);

  // TrainOptions::on_span and on_meeting.
  void take(const Span& span);
  void take(StepIndex step, const Meeting& meeting);

  /// Something that the run itself did; where the steps next to it are not wanted, nothing.
  void note(std::string_view text, Span::Moment begin, Span::Moment end);

  void on_added(Training& training) override;
  void on_fault(Training& training, const StepPlan& step, std::span<const FaultRecord> faults,
                std::int64_t cores_left) override;
  /// Writes the file when the last wanted step is over, and what came after it. Throws OutputError.
  void on_step(Training& training, const StepRecord& step) override;

  /// Writes the file unless that has been done or nothing was recorded: `timeline.json`, or where a
  /// process before this one has left that, `timeline-2.json` and so on. Throws OutputError.
  void write();

 private:
  // One for each thread, on lines of its own.
  struct alignas(128) Lane {
    std::vector<Span> spans{};
    // Of the first span that there was no room for.
    StepIndex cut{std::numeric_limits<std::int64_t>::max()};
  };

  [[nodiscard]] bool wants(StepIndex step) const { return step >= first_ && step <= last_; }
  [[nodiscard]] RecordedTimeline recorded() const;

  std::filesystem::path folder_;
  StepIndex first_;
  StepIndex last_;
  std::size_t most_spans_;
  std::vector<Lane> lanes_{};
  // Of those that were told, which may be more than there is room for.
  std::atomic<std::size_t> meetings_told_{0};
  std::vector<MeetingOfStep> meetings_{};
  std::vector<TimelineNote> notes_{};
  // RecordedTimeline uses these.
  int host_ = 0;
  int hosts_ = 1;
  bool written_ = false;
};

}  // namespace rubato
