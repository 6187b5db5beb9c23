#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rubato/base/parse.hpp>
#include <rubato/base/spec.hpp>
#include <rubato/steps/trace.hpp>

namespace rubato {

/// The longest availability there is, in seconds: ten years of 365.25 days. Beyond it lies a unit
/// that was mistaken for another, such as milliseconds since 1970.
inline constexpr double kMaxAvailabilitySeconds = 315'576'000;

/// From a time on there are so many devices.
struct AvailabilityChange {
  /// From 0 on, in whole microseconds.
  double seconds = 0;
  /// 0 to kMaxCores.
  std::int64_t devices = 0;

  friend bool operator==(const AvailabilityChange&, const AvailabilityChange&) = default;
};

/// How many devices there are at which time: what a cloud gave, or what a generator makes of it.
///
/// Times are kept in whole microseconds, so that what is compared with them is exact: they are
/// rounded to the nearest one where they come in.
class Availability {
 public:
  /// The number of devices changes at the times of `changes`, the first of which is 0, and is known
  /// until `length` seconds. Changes to what there is already are left out. The last change may be
  /// at `length`: it holds for no time, unless the last number is held (TraceEnd::hold).
  ///
  /// `source` names it in messages ("a100.csv", "saw:cycles=3"). `sample_gap` is the time between
  /// two measurements, in seconds, where it was measured in regular intervals. Throws Error, naming
  /// the change, when there are none, when times do not ascend, for a length that is not above 0 or
  /// above kMaxAvailabilitySeconds, and for a number of devices out of its range.
  Availability(std::vector<AvailabilityChange> changes, double length, std::string source,
               TraceEnd end = TraceEnd::error, std::optional<double> sample_gap = {});

  /// How many devices there are at `seconds`, continued beyond length() as end() says; empty when
  /// nothing follows. Requires 0 <= seconds <= 3e9 (95 years).
  [[nodiscard]] std::optional<std::int64_t> at(double seconds) const;
  /// The next time after `seconds` at which at() gives something else than at `seconds`; empty when
  /// there is none. Where nothing follows the end, the end is such a time.
  [[nodiscard]] std::optional<double> next_change(double seconds) const;

  /// Each is another number of devices than the one before.
  [[nodiscard]] const std::vector<AvailabilityChange>& changes() const { return changes_; }
  /// Whether there are ever as many as one of its changes says: not where it is at length(), unless
  /// the last number is held.
  [[nodiscard]] bool lasts(const AvailabilityChange& change) const {
    return change.seconds < length_ || end_ == TraceEnd::hold;
  }
  /// In seconds, greater than 0, without what follows.
  [[nodiscard]] double length() const { return length_; }
  [[nodiscard]] std::optional<double> sample_gap() const { return sample_gap_; }
  [[nodiscard]] TraceEnd end() const { return end_; }
  /// Whether at() answers for every time, however late.
  [[nodiscard]] bool endless() const { return end_ == TraceEnd::hold || end_ == TraceEnd::cycle; }
  [[nodiscard]] const std::string& source() const { return source_; }

  /// Writes it as the CSV `seconds,count` that read_availability() reads to the same changes and
  /// length: a row for each sample where there is a sampling gap, otherwise for each change, and a
  /// last row without a count for the end.
  void write_csv(std::ostream& out) const;

 private:
  // The last change at or before that time, in microseconds from 0 to length_.
  [[nodiscard]] std::size_t change_at(std::int64_t microseconds) const;
  // Whether a row for each sample says it all.
  [[nodiscard]] bool is_sampled() const;

  std::vector<AvailabilityChange> changes_;
  double length_;
  std::string source_;
  TraceEnd end_;
  std::optional<double> sample_gap_;
};

/// In which form a file has an availability.
enum class AvailabilityFormat {
  samples,      ///< CSV with a header that has a column of times in seconds and one of counts
  events,       ///< CSV without header: milliseconds,add|remove,node
  event_lines,  ///< a line of JSON for each event: [milliseconds, "add|remove|...", {"nodes": []}]
  counts,       ///< JSON: {"metadata": {"gap_seconds": 60}, "data": [counts]}
  records,      ///< JSON: [{"Time": seconds, "GPUs": count}, ...]
};
inline constexpr std::array<Choice<AvailabilityFormat>, 5> kAvailabilityFormats{
    {{AvailabilityFormat::samples, "samples"},
     {AvailabilityFormat::events, "events"},
     {AvailabilityFormat::event_lines, "event-lines"},
     {AvailabilityFormat::counts, "counts"},
     {AvailabilityFormat::records, "records"}}};

/// Samples or records may have several columns of devices, such as one for each zone; this says
/// which of them count. At most one of the two is given.
struct DeviceColumns {
  /// The name of one of them.
  std::string column{};
  /// The sum of those whose names contain this; "all" is the sum of all.
  std::string zone{};
};

/// Reads a file (or pipe) in one pass. Which of the formats it has is seen from its beginning,
/// unless `format` says so. Times count from the first sample, and from 0 where the file has
/// events; docs/traces.md describes each format with what is accepted in it. Memory grows with the
/// changes, and with the file only for AvailabilityFormat::counts and records, which are one JSON
/// value. Throws Error with file, line and what would be accepted.
[[nodiscard]] Availability read_availability(const std::filesystem::path& path,
                                             std::optional<AvailabilityFormat> format = {},
                                             TraceEnd end = TraceEnd::error,
                                             const DeviceColumns& columns = {});
/// The same for text at hand; `source` stands for the file's name in messages.
[[nodiscard]] Availability parse_availability(std::string_view text, std::string source,
                                              std::optional<AvailabilityFormat> format = {},
                                              TraceEnd end = TraceEnd::error,
                                              const DeviceColumns& columns = {});

/// Reads a file (or pipe) with either a trace (Trace::read_csv()) or an availability: the header of
/// a trace begins with `step`.
[[nodiscard]] std::variant<Trace, Availability> read_trace_or_availability(
    const std::filesystem::path& path, TraceEnd end = TraceEnd::error,
    const DeviceColumns& columns = {});

/// An availability in a few numbers.
struct AvailabilitySummary {
  /// Devices.
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  /// Devices, weighted by time.
  double mean = 0;
  /// How often the number of devices changes.
  std::int64_t changes = 0;
  double changes_per_hour = 0;
  /// The share of time without any device, 0 to 1, and the longest stretch of it in seconds.
  double share_at_zero = 0;
  double longest_at_zero = 0;
};
/// Of the length() that is known, without what follows it.
[[nodiscard]] AvailabilitySummary summary_of(const Availability& availability);

/// How the batch of a step follows from the devices that there are.
enum class ScalingPolicy {
  weak,    ///< each device has its samples: the batch follows the devices
  strong,  ///< the batch stays, and devices share it: with fewer of them each has more to do
};

/// What becomes of the time in which there is no device, in a trace of steps, which knows no time.
enum class OnZero {
  drop,   ///< it has no steps
  error,  ///< it is refused
};
inline constexpr std::array<Choice<OnZero>, 2> kOnZeros{
    {{OnZero::drop, "drop"}, {OnZero::error, "error"}}};

/// The time from the start of a step to that of the next, where nothing is said, in seconds.
inline constexpr double kDefaultSecondsPerStep = 60;

/// How an availability becomes a trace. Devices come in workers of `quantum`; those that fill no
/// worker idle. Each device of a worker is a core.
struct AvailabilitySteps {
  ScalingPolicy policy = ScalingPolicy::weak;
  /// Devices in a worker, from 1 to kMaxCores.
  std::int64_t quantum = 1;
  /// With ScalingPolicy::weak: of the batch, for each device; at least 1.
  std::int64_t samples_per_device = 32;
  /// With ScalingPolicy::strong: samples of every step; at least 1.
  std::int64_t batch = 0;
  /// The time of a step in seconds, from 0.001 to kMaxAvailabilitySeconds, or how many steps there
  /// are in a gap between two samples, 1 to 10,000. At most one of them; with none
  /// kDefaultSecondsPerStep.
  std::optional<double> seconds_per_step{};
  std::optional<std::int64_t> steps_per_sample{};
  /// Where there are ever more cores than so many, which are a worker at least, all numbers of
  /// workers are scaled down in proportion to fit, to the nearest, a half up; a worker that there
  /// is stays one.
  std::optional<std::int64_t> max_cores{};
  /// With ScalingPolicy::weak: where there is ever a larger batch, all batches are scaled down in
  /// proportion to fit, to the nearest multiple of `minibatch`, a half up, one at least.
  std::optional<std::int64_t> max_batch{};
  /// Samples; what every batch is a multiple of. At least 1.
  std::int64_t minibatch = 1;
  OnZero on_zero = OnZero::drop;

  friend bool operator==(const AvailabilitySteps&, const AvailabilitySteps&) = default;
};

/// "weak:quantum=4,max-cores=64", "strong:batch=1024"; empty text is "weak". A minibatch has
/// `minibatch` samples, which without another number is what a device has. Throws Error.
[[nodiscard]] AvailabilitySteps parse_availability_steps(const std::string& text,
                                                         std::int64_t minibatch);
/// The policies with their arguments.
[[nodiscard]] std::vector<Strategy> scaling_policies();

/// The step that so many devices take, as the options say: a function of their number alone, whose
/// scale is that of the most devices that an availability has within its length. Where more are
/// held beyond it, their step is as large as the limits allow.
class StepOfDeviceCount {
 public:
  /// Throws Error for options out of their range, and where batches are no multiples of the
  /// minibatch.
  StepOfDeviceCount(const Availability& availability, const AvailabilitySteps& options);

  /// Empty where they fill no worker. Throws Error for a batch above kMaxBatchSize.
  [[nodiscard]] std::optional<TraceStep> operator()(std::int64_t devices) const;
  /// Samples of the largest step, also of what is held.
  [[nodiscard]] std::int64_t max_batch() const;
  /// What was done to keep within max_cores and max_batch: "cores scaled by 8/16 to fit
  /// max-cores=8"; empty where nothing was.
  [[nodiscard]] std::string scaling() const;

 private:
  void require_one(std::string_view name, std::int64_t value, std::int64_t most) const;
  void check_limits() const;
  void require_multiple(std::string_view what, std::int64_t samples) const;
  // Workers that max_cores has room for.
  [[nodiscard]] std::int64_t most_of_limit() const;
  [[nodiscard]] std::int64_t cores_of(std::int64_t workers) const;
  [[nodiscard]] std::int64_t most_samples() const;
  [[nodiscard]] bool scales_batch() const;
  [[nodiscard]] std::int64_t batch_of(std::int64_t cores) const;

  AvailabilitySteps options_;
  std::string source_;
  // At most, within the length, and with what is held beyond it.
  std::int64_t most_workers_ = 0;
  std::int64_t largest_workers_ = 0;
};

/// The steps that an availability has room for, with the cores of each: step k begins at k times
/// the time of a step and takes what there is then. The trace has the source and the end of the
/// availability. Throws Error for options out of their range, where batches are no multiples of the
/// minibatch, without a single step, and for more than ten million.
[[nodiscard]] Trace to_steps(const Availability& availability, const AvailabilitySteps& options);

/// Makes an availability from a description: "constant:devices=8,hours=2", "spot:most=64,seed=3".
/// The same text makes the same availability, which it is also the source() of. Throws Error for an
/// unknown generator or argument, and for more than ten million changes.
[[nodiscard]] Availability generate_availability(const std::string& text,
                                                 TraceEnd end = TraceEnd::error);

/// Throws what generate_availability() throws for what is wrong with the text, and makes nothing.
void require_generator(const std::string& text);

/// The generators with their arguments: constant, steps, saw, walk, spot and daily.
[[nodiscard]] std::vector<Strategy> availability_generators();
/// Whether `text` is the name of a generator, with arguments or without.
[[nodiscard]] bool is_generator(std::string_view text);

}  // namespace rubato
