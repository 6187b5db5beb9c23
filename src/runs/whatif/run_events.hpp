#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <rubato/runs/run_configuration.hpp>
#include <rubato/steps/availability.hpp>
#include <rubato/steps/trace.hpp>

#include "recorded_training.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/run/run_history.hpp"

namespace rubato {

/// A change of the devices or of the batch that a run has seen, or cores that died in a step.
struct RunEvent {
  enum class Kind {
    /// Devices were taken; without a number of cores in the trace, the batch became smaller.
    taken,
    /// Devices were given back; without a number of cores, the batch became larger.
    given,
    /// The batch changed and the cores did not.
    batch,
    /// Cores died in a step, which was then computed again.
    fault,
  };
  Kind kind = Kind::batch;
  /// The steps that the run had before the first one that knows of it.
  std::int64_t steps = 0;
  /// Its modelled time, if devices come and go in time.
  std::optional<double> seconds{};
  /// The steps that the trace offers before and after it, the latter of a batch of 0 if there are
  /// too few devices for one.
  TraceStep before{};
  TraceStep after{};
  std::optional<RecordedTraining::Fault> fault{};

  /// "cores 8 to 6, batch 256 to 192", "core 3 died".
  [[nodiscard]] std::string words() const;
  /// The largest relative change of a number in it.
  [[nodiscard]] double size() const;
};

/// The steps that the trace of a run offers, and the events in it.
///
/// A run without an event has the steps of its trace, but each number that the event changes stays
/// as it was before it until the next event that changes that number; this one sets the number that
/// the trace has then. In modelled time the number is that of the devices, and the next change of
/// the availability sets it. The rows of a trace are those of steps, so a run that takes fewer
/// steps because of larger batches does not reach its last rows.
///
/// A fork has the rows of its trace from its first step on; those before it are of the run that it
/// comes from, and have no events if that run is gone. In modelled time a fork with other devices
/// has no events before it: they are those of that run.
class RunEvents {
 public:
  /// `segments` are those of the run's RunHistory. `most_samples` is a bound on the samples of a
  /// run without some of the events, which says how far a trace that repeats itself is needed.
  /// Throws Error if the trace cannot be read.
  RunEvents(const std::vector<RunSegment>& segments, const RecordedTraining& training,
            std::int64_t most_samples);

  /// The events in the order in which they happened.
  [[nodiscard]] const std::vector<RunEvent>& events() const { return events_; }
  /// The steps of the trace without these events, given by their positions; faults are no part of
  /// it. With `keeps`, what a run keeps because devices are not taken from it is its own for good:
  /// no event that is left in lowers it. What follows the end of a trace that must not end
  /// (TraceEnd::error) is its last row.
  [[nodiscard]] RunSteps without(const std::set<std::size_t>& events, bool keeps) const;

 private:
  void add_rows(const std::vector<RunSegment>& segments, const RecordedTraining& training,
                std::int64_t most_samples);
  void add_changes(const std::vector<RunSegment>& segments, const RecordedTraining& training);
  void add_faults(const RecordedTraining& training);
  [[nodiscard]] Trace trace_without(const std::set<std::size_t>& places, bool keeps) const;
  [[nodiscard]] Availability availability_without(const std::set<std::size_t>& places,
                                                  bool keeps) const;

  std::vector<RunEvent> events_;
  // For each event its row, or its change of the availability; none of a fault.
  std::vector<std::optional<std::size_t>> places_;
  // Either the rows, or the changes that change steps.
  std::vector<TraceStep> rows_;
  std::vector<AvailabilityChange> changes_;
  double length_ = 0;
  // The most devices that the availability has: its steps are scaled to fit them.
  std::int64_t most_devices_ = 0;
  TraceEnd end_ = TraceEnd::hold;
  std::string source_;
};

}  // namespace rubato
