// The listeners are called by all threads in training, so they only write to memory that on_added()
// has reserved: spans to the lane of the thread, meetings to the slot whose number they have drawn.
// A lane that is full keeps the number of its first step without room, and recorded() leaves out
// that step and all later ones on every lane. The trace events are made after the last step, with
// one event per line, on which page/step_timeline.cpp relies. Waiting is not recorded: it is the
// gap between two spans of a thread within a step (add_thread()).

#include "timeline.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>

#include "base/core/file.hpp"

namespace rubato {

namespace {

// Limit of notes, for runs in which cores die again and again.
constexpr std::size_t kMostNotes = 10'000;

std::filesystem::path free_file(const std::filesystem::path& folder) {
  std::filesystem::path file = folder / kTimelineFile;
  for (int i = 2; is_there(file); ++i) file = folder / fmt::format("timeline-{}.json", i);
  return file;
}

}  // namespace

Timeline::Timeline(std::filesystem::path folder, StepIndex first, StepIndex last,
                   std::size_t most_spans)
    : folder_(std::move(folder)), first_(first), last_(last), most_spans_(most_spans) {}

void Timeline::on_added(Training& training) {
  const auto threads = static_cast<std::size_t>(training.workers().threads());
  lanes_ = std::vector<Lane>(threads);
  for (Lane& lane : lanes_) lane.spans.reserve(most_spans_ / threads);
  meetings_.resize(most_spans_);
  if (const Hosts* const hosts = training.options().hosts.get()) {
    host_ = hosts->rank();
    hosts_ = hosts->count();
  }
}

void Timeline::take(const Span& span) {
  if (!wants(span.step)) return;
  Lane& lane = lanes_[static_cast<std::size_t>(span.thread)];
  if (lane.spans.size() == lane.spans.capacity()) {
    lane.cut = std::min(lane.cut, span.step);
    return;
  }
  lane.spans.push_back(span);
}

void Timeline::take(StepIndex step, const Meeting& meeting) {
  if (!wants(step)) return;
  // Relaxed suffices: fetch_add() gives each number to one thread only, and the meetings are read
  // after the tasks have ended, which orders these reads after all writes.
  const std::size_t number = meetings_reported_.fetch_add(1, std::memory_order_relaxed);
  if (number < meetings_.size()) meetings_[number] = {.step = step, .meeting = meeting};
}

void Timeline::note(std::string_view text, Span::Moment begin, Span::Moment end) {
  const bool recording =
      std::ranges::any_of(lanes_, [](const Lane& lane) { return !lane.spans.empty(); });
  if (!recording || written_ || notes_.size() >= kMostNotes) return;
  notes_.push_back({.text = std::string(text), .begin = begin, .end = end});
}

void Timeline::on_fault(Training& training, const StepPlan& step,
                        std::span<const FaultRecord> faults, std::int64_t cores_left) {
  static_cast<void>(training), static_cast<void>(cores_left);
  if (!wants(step.index)) return;
  const auto now = std::chrono::steady_clock::now();
  for (const FaultRecord& fault : faults) {
    note(fmt::format("core {} died", fault.core.value()), now, now);
  }
}

void Timeline::on_step(Training& training, const StepRecord& step) {
  static_cast<void>(training);
  if (step.plan.index > last_) write();
}

RecordedTimeline Timeline::recorded() const {
  StepIndex cut{std::numeric_limits<std::int64_t>::max()};
  for (const Lane& lane : lanes_) cut = std::min(cut, lane.cut);
  RecordedTimeline timeline{.notes = notes_,
                            .whole = cut.value() == std::numeric_limits<std::int64_t>::max(),
                            .host = host_,
                            .hosts = hosts_};
  Span::Moment end{};
  for (const Lane& lane : lanes_) {
    std::vector<Span>& spans = timeline.spans.emplace_back();
    std::ranges::copy_if(lane.spans, std::back_inserter(spans),
                         [cut](const Span& span) { return span.step < cut; });
    if (!spans.empty()) end = std::max(end, spans.back().end);
  }
  const std::size_t meetings = std::min(meetings_reported_.load(), meetings_.size());
  std::copy_if(meetings_.begin(), meetings_.begin() + static_cast<std::ptrdiff_t>(meetings),
               std::back_inserter(timeline.meetings),
               [cut](const MeetingOfStep& of) { return of.step < cut; });
  // Notes about steps that are left out are removed.
  if (!timeline.whole) {
    std::erase_if(timeline.notes, [end](const TimelineNote& note) { return note.begin > end; });
  }
  return timeline;
}

void Timeline::write() {
  if (written_) return;
  const RecordedTimeline timeline = recorded();
  const bool has_steps = std::ranges::any_of(timeline.spans, [](const std::vector<Span>& spans) {
    return std::ranges::any_of(spans,
                               [](const Span& span) { return span.activity != Activity::test; });
  });
  if (has_steps) write_file(free_file(folder_), timeline_json(timeline));
  written_ = true;
  // The memory is released, since it may be large and the run may continue for long.
  lanes_ = std::vector<Lane>(lanes_.size());
  meetings_ = {};
}

namespace {

using Moment = Span::Moment;

// Lanes and processes count from 1, because 0 has a special meaning in viewers.
constexpr std::int64_t kStepLane = 1;
constexpr std::int64_t kOtherLane = 2;
constexpr std::string_view kWait = "wait";
// Shorter gaps are caused by the listener itself.
constexpr std::chrono::microseconds kShortestWait{2};

// The time from the first activity of a step to the last.
struct StepExtent {
  EpochIndex epoch{};
  Moment begin = Moment::max();
  Moment end = Moment::min();
  // The time at which the tasks of the cores had ended.
  Moment cores_end = Moment::min();
};

using StepExtents = std::map<StepIndex, StepExtent>;

StepExtents extents_of(const RecordedTimeline& timeline) {
  StepExtents steps;
  for (const std::vector<Span>& of_thread : timeline.spans) {
    for (const Span& span : of_thread) {
      if (span.activity == Activity::test) continue;
      StepExtent& step = steps[span.step];
      step.epoch = span.epoch;
      step.begin = std::min(step.begin, span.begin);
      step.end = std::max(step.end, span.end);
      if (span.core) step.cores_end = std::max(step.cores_end, span.end);
    }
  }
  return steps;
}

// Builds the text of all events.
class TraceEvents {
 public:
  explicit TraceEvents(Moment zero) : zero_(zero) {}

  // Texts in `args` are the members of a JSON object, without its braces.
  void lane(int process, std::int64_t lane, std::string_view name) {
    add(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", process,
        lane, name);
    add(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
        process, lane, lane);
  }
  void process(int process, std::string_view name) {
    add(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"{}"}}}})", process, name);
    add(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", process,
        process);
  }
  void stretch(int process, std::int64_t lane, std::string_view name, Moment begin, Moment end,
               std::string_view args) {
    add(R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":"{}","args":{{{}}}}})",
        process, lane, microseconds(begin - zero_), microseconds(end - begin), name, args);
  }
  void instant(std::string_view name, Moment at) {
    add(R"({{"ph":"i","s":"g","pid":{},"tid":{},"ts":{:.3f},"name":"{}"}})", kTrainingProcess,
        kOtherLane, microseconds(at - zero_), name);
  }
  // A flow leads from one core to another.
  void flow(std::size_t id, const Meeting& meeting) {
    add(R"({{"ph":"s","id":{},"cat":"tree","pid":{},"tid":{},"ts":{:.3f},"name":"sum"}})", id,
        kCoresProcess, meeting.first.value() + 1, microseconds(meeting.left - zero_));
    add(R"({{"ph":"f","bp":"e","id":{},"cat":"tree","pid":{},"tid":{},"ts":{:.3f},"name":"sum"}})",
        id, kCoresProcess, meeting.second.value() + 1, microseconds(meeting.taken - zero_));
  }
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  static double microseconds(Moment::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (!text_.empty()) text_ += ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }

  Moment zero_;
  std::string text_;
};

// Steps count from 1 for people, as in --timeline. Other indices are those of metrics.jsonl.
std::int64_t number_of(StepIndex step) {
  return step.value() + 1;
}

std::string args_of(const Span& span) {
  std::string args = fmt::format(R"("step":{})", number_of(span.step));
  if (span.minibatch) args += fmt::format(R"(,"minibatch":{})", span.minibatch->value());
  if (span.minibatches > 1) args += fmt::format(R"(,"minibatches":{})", span.minibatches);
  if (span.core) args += fmt::format(R"(,"core":{})", span.core->value());
  return args;
}

void add_thread(TraceEvents& events, std::int64_t thread, std::vector<Span> spans,
                const StepExtents& steps) {
  const std::int64_t lane = thread + 1;
  events.lane(kThreadsProcess, lane, fmt::format("thread {}", thread));
  std::ranges::sort(spans, {}, &Span::begin);
  auto next = spans.begin();
  const auto wait = [&](StepIndex step, Moment begin, Moment end) {
    if (end - begin < kShortestWait) return;
    events.stretch(kThreadsProcess, lane, kWait, begin, end,
                   fmt::format(R"("step":{})", number_of(step)));
  };
  for (const auto& [index, step] : steps) {
    Moment done = step.begin;
    for (; next != spans.end() && next->step <= index; ++next) {
      const Span& span = *next;
      if (span.activity != Activity::test) wait(index, done, span.begin);
      events.stretch(kThreadsProcess, lane, choice_name(kActivities, span.activity), span.begin,
                     span.end, args_of(span));
      done = span.end;
    }
    // Only the calling thread works after the cores' tasks have ended, so the others' idle time
    // ends there.
    wait(index, done, step.cores_end);
  }
}

// Calls task(core) for each core whose minibatches the span is about.
template <class Task>
void for_cores(const Span& span, const Task& task) {
  if (!span.core) return;
  for (std::int64_t i = 0; i < span.cores; ++i) task(CoreRank{span.core->value() + i});
}

void add_cores(TraceEvents& events, const RecordedTimeline& timeline) {
  std::set<CoreRank> cores;
  for (const std::vector<Span>& of_thread : timeline.spans) {
    for (const Span& span : of_thread) {
      for_cores(span, [&](CoreRank core) { cores.insert(core); });
    }
  }
  for (const CoreRank core : cores) {
    events.lane(kCoresProcess, core.value() + 1, fmt::format("core {}", core.value()));
  }
  for (std::size_t thread = 0; thread < timeline.spans.size(); ++thread) {
    for (const Span& span : timeline.spans[thread]) {
      for_cores(span, [&](CoreRank core) {
        events.stretch(kCoresProcess, core.value() + 1, choice_name(kActivities, span.activity),
                       span.begin, span.end,
                       fmt::format(R"({},"thread":{})", args_of(span), thread));
      });
    }
  }
  for (std::size_t i = 0; i < timeline.meetings.size(); ++i) {
    events.flow(i + 1, timeline.meetings[i].meeting);
  }
}

void add_training(TraceEvents& events, const RecordedTimeline& timeline, const StepExtents& steps) {
  events.lane(kTrainingProcess, kStepLane, "steps");
  events.lane(kTrainingProcess, kOtherLane, "tests, checkpoints, faults");
  for (const auto& [index, step] : steps) {
    events.stretch(kTrainingProcess, kStepLane, fmt::format("{}{}", kStepName, number_of(index)),
                   step.begin, step.end, fmt::format(R"("epoch":{})", step.epoch.value()));
  }
  for (const std::vector<Span>& of_thread : timeline.spans) {
    for (const Span& span : of_thread) {
      if (span.activity != Activity::test) continue;
      events.stretch(kTrainingProcess, kOtherLane, choice_name(kActivities, span.activity),
                     span.begin, span.end, fmt::format(R"("epoch":{})", span.epoch.value()));
    }
  }
  for (const TimelineNote& note : timeline.notes) {
    if (note.begin == note.end) {
      events.instant(note.text, note.begin);
    } else {
      events.stretch(kTrainingProcess, kOtherLane, note.text, note.begin, note.end, {});
    }
  }
}

}  // namespace

std::string timeline_json(const RecordedTimeline& timeline) {
  const StepExtents steps = extents_of(timeline);
  Moment zero = Moment::max();
  for (const auto& [index, step] : steps) zero = std::min(zero, step.begin);
  TraceEvents events(zero);
  // The host is named if there are several, so that its lanes are not taken for those of all hosts.
  const std::string of_host =
      timeline.hosts > 1 ? fmt::format(" of host {}", timeline.host) : std::string();
  events.process(kTrainingProcess, "training" + of_host);
  events.process(kThreadsProcess, "threads" + of_host);
  events.process(kCoresProcess, "cores" + of_host);
  add_training(events, timeline, steps);
  for (std::size_t thread = 0; thread < timeline.spans.size(); ++thread) {
    add_thread(events, static_cast<std::int64_t>(thread), timeline.spans[thread], steps);
  }
  add_cores(events, timeline);
  return fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"program":"rubato","first_step":{},"last_step":{},"whole":{},"host":{},"hosts":{}}},"traceEvents":[{}{}{}]}}{})",
      number_of(steps.begin()->first), number_of(steps.rbegin()->first), timeline.whole,
      timeline.host, timeline.hosts, '\n', events.text(), '\n', '\n');
}

}  // namespace rubato
