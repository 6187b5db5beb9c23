// Events are changes between neighbours in a list: the rows of a trace of steps or, in modelled
// time, the changes of an availability that make another step. A list that repeats itself is
// written out as far as a run without events may need it. places_ has the index of each event in
// the list, so that without() can rebuild the list without some of them. HeldNumber is the rule for
// one number: it stays as it was before an event that is left out until the next change and, with
// `keeps`, also through changes that would lower it.

#include "run_events.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/steps/modelled_time.hpp>

#include "base/core/throw_error.hpp"
#include "base/core/vectors.hpp"
#include "runs/config/chosen_parts.hpp"

namespace rubato {

namespace {

// Rows of a trace that repeats itself, and changes of an availability that does, are not written
// out further than this; the repetition then begins again.
constexpr std::int64_t kMostRows = 2'000'000;
// A run without some events may take so many times as long as the run.
constexpr double kTimesAsLong = 20;
constexpr double kMicrosecond = 1e-6;

std::int64_t cores_of(const TraceStep& step) {
  return step.cores.value_or(0);
}

RunEvent::Kind kind_of(const TraceStep& before, const TraceStep& after) {
  const bool has_cores = before.cores && after.cores;
  const auto [was, is] = has_cores ? std::pair(*before.cores, *after.cores)
                                   : std::pair(before.batch_size, after.batch_size);
  if (was == is) return RunEvent::Kind::batch;
  return is < was ? RunEvent::Kind::taken : RunEvent::Kind::given;
}

double relative(std::int64_t before, std::int64_t after) {
  const auto [least, most] = std::minmax(before, after);
  return most == 0 ? 0 : static_cast<double>(most - least) / static_cast<double>(most);
}

}  // namespace

std::string RunEvent::words() const {
  if (fault) {
    return fmt::format("{} {} died{}", fault->cores.size() == 1 ? "core" : "cores",
                       fmt::join(fault->cores, ", "),
                       fault->attempts > 1 ? fmt::format(", in {} attempts", fault->attempts) : "");
  }
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, std::int64_t was, std::int64_t is) {
    if (was != is) parts.push_back(fmt::format("{} {} to {}", name, was, is));
  };
  add("cores", cores_of(before), cores_of(after));
  add("batch", before.batch_size, after.batch_size);
  return parts.empty() ? "cores of hosts" : fmt::format("{}", fmt::join(parts, ", "));
}

double RunEvent::size() const {
  return std::max(relative(before.batch_size, after.batch_size),
                  relative(cores_of(before), cores_of(after)));
}

RunEvents::RunEvents(const std::vector<RunSegment>& segments, const RecordedTraining& training,
                     std::int64_t most_samples) {
  const RunSteps steps = load_run_steps(segments.back().configuration);
  source_ = source_of(steps);
  if (std::holds_alternative<Trace>(steps)) {
    add_rows(segments, training, most_samples);
  } else {
    add_changes(segments, training);
  }
  add_faults(training);
}

void RunEvents::add_rows(const std::vector<RunSegment>& segments, const RecordedTraining& training,
                         std::int64_t most_samples) {
  const auto traces = vector_of(segments, [](const RunSegment& segment) {
    return std::get<Trace>(load_run_steps(segment.configuration));
  });
  const Trace& trace = traces.back();
  const RunConfiguration& run = segments.back().configuration;
  end_ = trace.end() == TraceEnd::error ? TraceEnd::hold : trace.end();
  std::int64_t count = trace.length();
  if (trace.end() == TraceEnd::cycle) {
    const std::int64_t least =
        has_batch_policy(run)
            ? run.minibatch
            : std::ranges::min(trace.steps(), {}, &TraceStep::batch_size).batch_size;
    count = std::max(std::ssize(training.steps), most_samples / least) + 1;
    count = std::min(count, std::max(kMostRows, std::ssize(training.steps) + 1));
  }
  // A trace that is shorter than the steps before the fork may hold its last row.
  if (segments.size() > 1) count = std::max(count, segments.back().begin + 1);
  std::size_t at = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    while (at + 1 < segments.size() && segments[at + 1].begin <= row) ++at;
    const auto step = traces[at].at(StepIndex{row});
    if (!step) break;
    rows_.push_back(*step);
  }
  count = std::ssize(rows_);
  const std::int64_t taken = std::min(std::ssize(training.steps), count);
  for (std::int64_t row = segments.front().begin + 1; row < taken; ++row) {
    const TraceStep& before = rows_[static_cast<std::size_t>(row - 1)];
    const TraceStep& after = rows_[static_cast<std::size_t>(row)];
    if (before == after) continue;
    events_.push_back(
        {.kind = kind_of(before, after), .steps = row, .before = before, .after = after});
    places_.emplace_back(row);
  }
}

namespace {

// The modelled time from which on a run has the devices that it has at its end.
double begin_of_devices(const std::vector<RunSegment>& segments, const RecordedTraining& training) {
  const auto text_of = [](const RunSegment& segment) {
    const RunConfiguration& run = segment.configuration;
    const RunSteps steps = load_run_steps(run);
    const Availability& availability = std::get<Zones>(steps).only();
    std::ostringstream text;
    availability.write_csv(text);
    text << choice_name(kTraceEnds, availability.end()) << run.availability.text();
    return text.str();
  };
  const std::string last = text_of(segments.back());
  std::size_t first = segments.size() - 1;
  while (first > 0 && text_of(segments[first - 1]) == last) --first;
  const auto taken = static_cast<std::size_t>(segments[first].begin);
  return taken == 0 ? 0 : training.steps.at(taken - 1).time.value_or(ClockTime()).seconds;
}

}  // namespace

void RunEvents::add_changes(const std::vector<RunSegment>& segments,
                            const RecordedTraining& training) {
  const RunConfiguration& run = segments.back().configuration;
  const RunSteps steps = load_run_steps(run);
  const Availability& availability = std::get<Zones>(steps).only();
  const double begin = begin_of_devices(segments, training);
  const StepOfDeviceCount step_of = step_of_devices(availability, run);
  const auto step_with = [&](std::int64_t devices) {
    return step_of(devices).value_or(TraceStep{.batch_size = 0, .cores = 0});
  };
  end_ = availability.end() == TraceEnd::error ? TraceEnd::hold : availability.end();
  length_ = availability.length();
  const double seconds = training.outcome.time ? training.outcome.time->seconds : 0;
  const std::int64_t most_rounds = std::max<std::int64_t>(
      1, std::min(kMostRows / std::ssize(availability.changes()),
                  static_cast<std::int64_t>(kMaxAvailabilitySeconds / length_)));
  const std::int64_t rounds =
      availability.end() == TraceEnd::cycle
          ? std::clamp<std::int64_t>(std::llround(std::ceil(kTimesAsLong * seconds / length_)), 1,
                                     most_rounds)
          : 1;
  std::int64_t devices = -1;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const AvailabilityChange& change : availability.changes()) {
      most_devices_ = std::max(most_devices_, change.devices);
      if (!availability.lasts(change)) continue;
      // A change of devices that changes no step is none of the run's.
      if (devices >= 0 && step_with(change.devices) == step_with(devices)) continue;
      const double at = static_cast<double>(round) * length_ + change.seconds;
      if (devices >= 0 && at >= begin && at < seconds) {
        RunEvent event{
            .seconds = at, .before = step_with(devices), .after = step_with(change.devices)};
        event.kind = kind_of(event.before, event.after);
        // The times of steps were rounded when they were recorded.
        event.steps = std::ranges::count_if(training.steps, [&](const auto& step) {
          return step.time && step.time->seconds < at - kMicrosecond;
        });
        events_.push_back(std::move(event));
        places_.emplace_back(changes_.size());
      }
      devices = change.devices;
      changes_.push_back({.seconds = at, .devices = devices});
    }
  }
  length_ *= static_cast<double>(rounds);
}

void RunEvents::add_faults(const RecordedTraining& training) {
  for (const RecordedTraining::Fault& fault : training.faults) {
    RunEvent event{.kind = RunEvent::Kind::fault, .steps = fault.step, .fault = fault};
    const auto at = std::ranges::upper_bound(events_, event.steps, {}, &RunEvent::steps);
    places_.insert(places_.begin() + (at - events_.begin()), std::nullopt);
    events_.insert(at, std::move(event));
  }
}

RunSteps RunEvents::without(const std::set<std::size_t>& events, bool keeps) const {
  std::set<std::size_t> places;
  for (const std::size_t event : events) {
    if (places_[event]) places.insert(*places_[event]);
  }
  if (rows_.empty()) return availability_without(places, keeps);
  return trace_without(places, keeps);
}

namespace {

// A number of the steps without some events.
class HeldNumber {
 public:
  explicit HeldNumber(bool keeps) : keeps_(keeps) {}
  /// Returns whether the number becomes that of the trace, which was `from` and is `to` now.
  bool follows(std::int64_t from, std::int64_t to, std::int64_t now, bool left_out) {
    if (from == to) return false;
    is_held_ = left_out || (is_held_ && keeps_ && to < now);
    return !is_held_;
  }

 private:
  bool keeps_;
  bool is_held_ = false;
};

}  // namespace

Trace RunEvents::trace_without(const std::set<std::size_t>& places, bool keeps) const {
  std::vector<TraceStep> rows{rows_.front()};
  HeldNumber batch(keeps);
  HeldNumber cores(keeps);
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    const TraceStep& before = rows_[row - 1];
    const TraceStep& after = rows_[row];
    TraceStep now = rows.back();
    const bool left_out = places.contains(row);
    if (batch.follows(before.batch_size, after.batch_size, now.batch_size, left_out)) {
      now.batch_size = after.batch_size;
    }
    const bool others = before.host_cores != after.host_cores && !left_out;
    if (cores.follows(cores_of(before), cores_of(after), cores_of(now), left_out) ||
        (others && cores_of(after) == cores_of(now))) {
      now.cores = after.cores;
      now.host_cores = after.host_cores;
    }
    rows.push_back(std::move(now));
  }
  return {std::move(rows), end_, source_};
}

Availability RunEvents::availability_without(const std::set<std::size_t>& places,
                                             bool keeps) const {
  std::vector<AvailabilityChange> changes{changes_.front()};
  HeldNumber devices(keeps);
  std::int64_t most = changes_.front().devices;
  for (std::size_t i = 1; i < changes_.size(); ++i) {
    const AvailabilityChange& change = changes_[i];
    if (devices.follows(changes_[i - 1].devices, change.devices, changes.back().devices,
                        places.contains(i))) {
      changes.push_back(change);
    }
    if (changes.back().seconds < length_) most = std::max(most, changes.back().devices);
  }
  if (most < most_devices_) {
    // The steps stay scaled to the most devices that the run had: they are there for the last
    // microsecond but one, which no step sees.
    const std::int64_t last = changes.back().devices;
    const double end = length_ - 2 * kMicrosecond;
    std::erase_if(changes, [&](const auto& change) { return change.seconds >= end; });
    changes.push_back({.seconds = end, .devices = most_devices_});
    changes.push_back({.seconds = length_ - kMicrosecond, .devices = last});
  }
  return {std::move(changes), length_, source_, end_};
}

}  // namespace rubato
