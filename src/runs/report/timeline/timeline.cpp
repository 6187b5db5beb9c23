#include "timeline.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/core/system/file.hpp"
#include "timeline_json.hpp"

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
  const std::size_t number = meetings_told_.fetch_add(1, std::memory_order_relaxed);
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
  const std::size_t meetings = std::min(meetings_told_.load(), meetings_.size());
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

}  // namespace rubato
