#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rubato/core/choice.hpp>
#include <rubato/core/family.hpp>
#include <rubato/trace/availability.hpp>
#include <rubato/trace/trace.hpp>

namespace rubato {

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

}  // namespace rubato
