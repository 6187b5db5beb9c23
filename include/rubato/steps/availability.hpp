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

/// The longest availability, in seconds: ten years of 365.25 days. A longer one indicates a wrong
/// unit, such as milliseconds since 1970.
inline constexpr double kMaxAvailabilitySeconds = 315'576'000;

/// A change of the number of devices, which holds from its time on.
struct AvailabilityChange {
  /// At least 0, in whole microseconds.
  double seconds = 0;
  /// At least 0, at most kMaxCores.
  std::int64_t devices = 0;

  friend bool operator==(const AvailabilityChange&, const AvailabilityChange&) = default;
};

/// A change of the price of a device for an hour, in any currency, which holds from its time on.
struct PriceChange {
  /// At least 0, in whole microseconds.
  double seconds = 0;
  /// At least 0.
  double price = 0;

  friend bool operator==(const PriceChange&, const PriceChange&) = default;
};

/// The facts in a file about the availability that was read from it.
struct AvailabilityOrigin {
  /// The file's time at second 0 of the availability: that of the first sample, or 0 for events.
  /// Empty if the availability was not read from a file.
  std::optional<double> start{};
  /// Seconds from second 0 to the first sample, during which there are no devices; above 0 only for
  /// a zone that begins after others (Zones).
  double delay = 0;
  /// Seconds from the end of the file's data to the length; above 0 only for a zone that ends
  /// before others and is repeated with them.
  double rest = 0;
  /// The names of the columns of devices that count; empty if the file has one alone.
  std::vector<std::string> columns{};
};

/// The number of devices over time: recorded from a cloud, or made by a generator.
///
/// Times are rounded to whole microseconds when they are read, so that comparisons with them are
/// exact.
class Availability {
 public:
  /// The number of devices changes at the times of `changes`, the first of which is 0, and is known
  /// until `length` seconds. Changes to the current number are dropped. The last change may be at
  /// `length`: it then has no duration, unless the last number is held (TraceEnd::hold).
  ///
  /// `source` names it in messages ("a100.csv", "saw:cycles=3"). `sample_gap` is the time between
  /// two measurements, in seconds, if it was measured at regular intervals. `prices` have the same
  /// form as the changes; empty if there are none. Throws Error, naming the change, if there are no
  /// changes, if times do not ascend, if the length is not above 0 or is above
  /// kMaxAvailabilitySeconds, and if a number of devices or a price is out of range.
  Availability(std::vector<AvailabilityChange> changes, double length, std::string source,
               TraceEnd end = TraceEnd::error, std::optional<double> sample_gap = {},
               std::vector<PriceChange> prices = {}, AvailabilityOrigin origin = {});

  /// The number of devices at `seconds`, continued beyond length() according to end(); empty if
  /// nothing follows. Requires 0 <= seconds <= 3e9 (95 years).
  [[nodiscard]] std::optional<std::int64_t> at(double seconds) const;
  /// The next time after `seconds` at which the result of at() differs; empty if there is none. If
  /// nothing follows the end, the end is such a time.
  [[nodiscard]] std::optional<double> next_change(double seconds) const;

  /// The price at `seconds`, and the next time after it at which another may begin; both continue
  /// beyond length() as at() does. Empty without prices, and if nothing follows.
  [[nodiscard]] std::optional<double> price_at(double seconds) const;
  [[nodiscard]] std::optional<double> next_price(double seconds) const;
  [[nodiscard]] const std::vector<PriceChange>& prices() const { return prices_; }

  /// The changes; each is to a different number of devices than the one before.
  [[nodiscard]] const std::vector<AvailabilityChange>& changes() const { return changes_; }
  /// True if the number of `change`, one of changes(), ever has a duration: not at length(), unless
  /// the last number is held.
  [[nodiscard]] bool lasts(const AvailabilityChange& change) const {
    return change.seconds < length_ || end_ == TraceEnd::hold;
  }
  /// The length in seconds, above 0, without its continuation.
  [[nodiscard]] double length() const { return length_; }
  [[nodiscard]] std::optional<double> sample_gap() const { return sample_gap_; }
  [[nodiscard]] TraceEnd end() const { return end_; }
  /// The same availability, after which something else follows.
  [[nodiscard]] Availability with_end(TraceEnd end) const {
    Availability other = *this;
    other.end_ = end;
    return other;
  }
  /// True if at() has a result for every time, however late.
  [[nodiscard]] bool endless() const { return end_ == TraceEnd::hold || end_ == TraceEnd::cycle; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const AvailabilityOrigin& origin() const { return origin_; }

  /// Writes the CSV `seconds,count`, or `seconds,count,price`, from which read_availability() reads
  /// the same changes and length: a row for each sample if there is a sampling gap, otherwise for
  /// each change, and a last row without a count for the end.
  void write_csv(std::ostream& out) const;

 private:
  // The microseconds within the length that a time continues; empty if nothing follows.
  [[nodiscard]] std::optional<std::int64_t> within(double seconds) const;
  // True if rows for the samples alone represent all changes.
  [[nodiscard]] bool is_sampled() const;
  // The times of all rows of write_csv() but the last, in microseconds.
  [[nodiscard]] std::vector<std::int64_t> row_times() const;

  std::vector<AvailabilityChange> changes_;
  double length_;
  std::string source_;
  TraceEnd end_;
  std::optional<double> sample_gap_;
  std::vector<PriceChange> prices_;
  AvailabilityOrigin origin_;
};

/// The devices of one zone over time.
struct Zone {
  std::string name{};
  Availability availability;
};

/// The availabilities of one or several zones of a cloud, of which a training is in one at a time.
class Zones {
 public:
  /// One zone, without a name.
  Zones(Availability availability);
  /// `source` names all of them in messages.
  ///
  /// Zones whose times are of one clock are put on it: those with absolute times
  /// (has_absolute_times()), and the others if their files start at different times. Second 0 is
  /// the earliest start. A zone that starts later has no devices before that, at the price of its
  /// first sample. If such zones are repeated (TraceEnd::cycle), they are so together, after the
  /// latest end; a zone that ends earlier has no devices from then on.
  ///
  /// Throws Error if there are none, for a name that is given twice, is empty, or has one of ",=:/"
  /// in it, and for ends (Availability::end()) that differ.
  Zones(std::vector<Zone> zones, std::string source);

  [[nodiscard]] const std::vector<Zone>& all() const { return zones_; }
  /// True if there are several.
  [[nodiscard]] bool several() const { return zones_.size() > 1; }
  /// The availability of the only zone. Throws Error if there are several.
  [[nodiscard]] const Availability& only() const;
  /// The continuation of each zone, which has its own length, and the longest of these lengths.
  [[nodiscard]] TraceEnd end() const { return zones_.front().availability.end(); }
  [[nodiscard]] double length() const;
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  std::vector<Zone> zones_;
  std::string source_;
};

/// True if an availability was read from a file whose times are too late to count from a beginning
/// of its own, such as seconds since 1970.
[[nodiscard]] bool has_absolute_times(const Availability& availability);

/// The formats of availability files.
enum class AvailabilityFormat {
  samples,  ///< CSV with a header that has a column of times in seconds and one of counts, and
            ///< possibly one named price
  events,   ///< CSV without header: milliseconds,add|remove,node
};
inline constexpr std::array<Choice<AvailabilityFormat>, 2> kAvailabilityFormats{
    {{AvailabilityFormat::samples, "samples"}, {AvailabilityFormat::events, "events"}}};

/// Chooses columns of samples that have several, such as one for each zone. At most one
/// of the two is given.
struct DeviceColumns {
  /// The name of a single column.
  std::string column{};
  /// Selects the sum of the column of this name or, if there is none, of the columns whose names
  /// have it as whole words or, if there are none, in them; "all" is the sum of all.
  std::string zone{};
};

/// Reads a file (or pipe) in one pass. The format is detected from its beginning unless `format`
/// gives it. Times count from the first sample, or from 0 in files of events; docs/traces.md
/// describes each format and what it accepts. Memory grows with the changes. Throws Error with
/// file, line and what would be accepted.
[[nodiscard]] Availability read_availability(const std::filesystem::path& path,
                                             std::optional<AvailabilityFormat> format = {},
                                             TraceEnd end = TraceEnd::error,
                                             const DeviceColumns& columns = {});
/// Like read_availability(), for text in memory; `source` replaces the file's name in messages.
[[nodiscard]] Availability parse_availability(std::string_view text, std::string source,
                                              std::optional<AvailabilityFormat> format = {},
                                              TraceEnd end = TraceEnd::error,
                                              const DeviceColumns& columns = {});

/// Reads a file (or pipe) of samples in which each column of devices is a zone by its own name, or
/// each that DeviceColumns::zone selects by `part`. A column `price` is that of all. Throws Error
/// as read_availability() does.
[[nodiscard]] Zones read_zones(const std::filesystem::path& path, TraceEnd end = TraceEnd::error,
                               const std::string& part = {});

/// Reads a file (or pipe) with either a trace (Trace::read_csv()) or an availability. A trace is
/// recognized by a header that begins with `step`.
[[nodiscard]] std::variant<Trace, Availability> read_trace_or_availability(
    const std::filesystem::path& path, TraceEnd end = TraceEnd::error,
    const DeviceColumns& columns = {});

/// Statistics of the prices of a device for an hour.
struct PriceSummary {
  double lowest = 0;
  double highest = 0;
  /// The mean price, weighted by time.
  double mean = 0;
  /// The number of changes.
  std::int64_t changes = 0;
  /// The hours for which the file has no price: before its first sample and after its end
  /// (AvailabilityOrigin). The mean does not count them.
  double hours_without = 0;
};

/// Statistics of an availability.
struct AvailabilitySummary {
  /// The smallest and the largest number of devices.
  std::int64_t fewest = 0;
  std::int64_t most = 0;
  /// The mean number of devices, weighted by time.
  double mean = 0;
  /// The number of changes.
  std::int64_t changes = 0;
  double changes_per_hour = 0;
  /// The share of time without any device, from 0 to 1, and the longest such interval in seconds.
  double share_at_zero = 0;
  double longest_at_zero = 0;
  /// Empty without prices.
  std::optional<PriceSummary> prices{};
};
/// The statistics of the known length(), without its continuation.
[[nodiscard]] AvailabilitySummary summary_of(const Availability& availability);

/// The relation between the devices and the batch of a step.
enum class ScalingPolicy {
  weak,    ///< each device has a fixed number of samples: the batch follows the devices
  strong,  ///< the batch is fixed and shared: with fewer devices each has more to do
};

/// The treatment of time without devices in a trace of steps, which has no times.
enum class OnZero {
  drop,   ///< such time has no steps
  error,  ///< such time is an error
};
inline constexpr std::array<Choice<OnZero>, 2> kOnZeros{
    {{OnZero::drop, "drop"}, {OnZero::error, "error"}}};

/// The default time from the start of a step to that of the next, in seconds.
inline constexpr double kDefaultSecondsPerStep = 60;

/// Options for turning an availability into a trace. Devices come in workers of `quantum`; those
/// that do not fill a worker are idle. Each device of a worker is a core.
struct AvailabilitySteps {
  ScalingPolicy policy = ScalingPolicy::weak;
  /// Devices in a worker, from 1 to kMaxCores.
  std::int64_t quantum = 1;
  /// With ScalingPolicy::weak: samples of the batch for each device, at least 1.
  std::int64_t samples_per_device = 32;
  /// With ScalingPolicy::strong: samples of every step, at least 1.
  std::int64_t batch = 0;
  /// The time of a step in seconds, from 0.001 to kMaxAvailabilitySeconds, or the number of steps
  /// between two samples, from 1 to 10,000. At most one is given; the default is
  /// kDefaultSecondsPerStep.
  std::optional<double> seconds_per_step{};
  std::optional<std::int64_t> steps_per_sample{};
  /// The largest number of cores, at least a worker. If there are ever more, all numbers of workers
  /// are scaled down in proportion, rounded to the nearest (a half up), but never to 0.
  std::optional<std::int64_t> max_cores{};
  /// With ScalingPolicy::weak, the largest batch. If there is ever a larger one, all batches are
  /// scaled down in proportion, rounded to the nearest multiple of `minibatch` (a half up), at
  /// least one.
  std::optional<std::int64_t> max_batch{};
  /// Samples of a minibatch; every batch is a multiple of it. At least 1.
  std::int64_t minibatch = 1;
  OnZero on_zero = OnZero::drop;

  friend bool operator==(const AvailabilitySteps&, const AvailabilitySteps&) = default;
};

/// Such options by their text: "weak:quantum=4,max-cores=64", "strong:batch=1024"; empty text is
/// "weak". They are made for the samples of a minibatch, which is also the default of a device's
/// samples. Throws Error for text that is not accepted.
using AvailabilityChoice = Chosen<AvailabilitySteps, std::int64_t>;
/// @cond Doxygen does not know specialisations of members.
template <>
AvailabilityChoice AvailabilityChoice::built_in(std::string_view text);
/// @endcond
/// The policies with their arguments.
[[nodiscard]] std::vector<Strategy> scaling_policies();

/// The step for a number of devices, a function of that number alone. Batches and cores are scaled
/// by the most devices of a zone within its availability's length; if a larger number is held
/// beyond it, that step is as large as the limits allow.
class StepOfDeviceCount {
 public:
  /// Throws Error for options out of range, and if batches are not multiples of the minibatch.
  StepOfDeviceCount(const Zones& zones, const AvailabilitySteps& options);

  /// Empty if the devices do not fill a worker. Throws Error for a batch above kMaxBatchSize.
  [[nodiscard]] std::optional<TraceStep> operator()(std::int64_t devices) const;
  /// Samples of the largest step, including held ones.
  [[nodiscard]] std::int64_t max_batch() const;
  /// A description of the scaling for max_cores and max_batch: "cores scaled by 8/16 to fit
  /// max-cores=8"; empty without scaling.
  [[nodiscard]] std::string scaling() const;

 private:
  void require_one(std::string_view name, std::int64_t value, std::int64_t most) const;
  void check_limits() const;
  void require_multiple(std::string_view what, std::int64_t samples) const;
  // The most workers that max_cores allows.
  [[nodiscard]] std::int64_t most_of_limit() const;
  [[nodiscard]] std::int64_t cores_of(std::int64_t workers) const;
  [[nodiscard]] std::int64_t most_samples() const;
  [[nodiscard]] bool scales_batch() const;
  [[nodiscard]] std::int64_t batch_of(std::int64_t cores) const;

  AvailabilitySteps options_;
  std::string source_;
  // The most workers within the length, and including those held beyond it.
  std::int64_t most_workers_ = 0;
  std::int64_t largest_workers_ = 0;
};

/// Turns an availability into steps with their cores: step k begins at k times the time of a step
/// and uses the devices of that time. The trace has the source and the end of the availability.
/// Throws Error for options out of range, if batches are not multiples of the minibatch, if there
/// is no step at all, and for more than ten million steps.
[[nodiscard]] Trace to_steps(const Availability& availability, const AvailabilitySteps& options);

/// Generates an availability from a description: "constant:devices=8,hours=2",
/// "spot:most=64,seed=3". The same text always gives the same availability, and is its source().
/// Throws Error for an unknown generator or argument, and for more than ten million changes.
[[nodiscard]] Availability generate_availability(const std::string& text,
                                                 TraceEnd end = TraceEnd::error);

/// Throws what generate_availability() would throw for the text, without generating anything.
void require_generator(const std::string& text);

/// The generators with their arguments, as `rubato list generators` prints them.
[[nodiscard]] std::vector<Strategy> availability_generators();
/// True if `text` is the name of a generator, with or without arguments.
[[nodiscard]] bool is_generator(std::string_view text);

}  // namespace rubato
