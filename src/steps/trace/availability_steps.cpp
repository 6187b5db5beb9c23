// StepTime is a fraction of integers and counts the steps that begin before a time, so no rounding
// error accumulates: the steps between two changes of the availability are the difference of two
// counts. StepOfDeviceCount maps a number of devices to a step, for traces here and for the clock.
// Cores and batches that exceed their limits are scaled in proportion to the largest ones within
// the length, so the whole availability has to be known before the first step. The policies are
// rows of a table; arguments that both accept are read in read_policy().

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/parse.hpp>
#include <rubato/steps/availability.hpp>

#include "availability_parts.hpp"
#include "base/core/throw_error.hpp"

namespace rubato {

namespace {

using detail::microseconds_of;

constexpr std::int64_t kMostSteps = 10'000'000;
// The microseconds of ten years times this number are within 64 bits.
constexpr std::int64_t kMostStepsPerSample = 10'000;
constexpr RealRange kStepSeconds{0.001, kMaxAvailabilitySeconds, true, true,
                                 "a number from 0.001 to 315576000"};

AvailabilitySteps read_weak(Spec& spec, std::int64_t minibatch) {
  AvailabilitySteps options;
  options.samples_per_device =
      spec.whole("samples-per-device", Unset{"the minibatch size"}, 1, kMaxBatchSize)
          .value_or(minibatch);
  options.max_batch = spec.whole("max-batch", Unset{"no limit"}, 1, kMaxBatchSize);
  return options;
}

AvailabilitySteps read_strong(Spec& spec, std::int64_t /*minibatch*/) {
  AvailabilitySteps options;
  options.policy = ScalingPolicy::strong;
  options.batch = spec.whole("batch", Required{"1024"}, 1, kMaxBatchSize);
  return options;
}

struct PolicyRow {
  std::string_view name;
  std::string_view help;
  AvailabilitySteps (*read)(Spec& spec, std::int64_t minibatch);
};

constexpr std::array<PolicyRow, 2> kPolicies{
    {{"weak", "the batch follows the devices: each has its samples", read_weak},
     {"strong", "the batch stays and devices share it: with fewer of them each has more to do",
      read_strong}}};

// Arguments of both policies are read after those of one.
AvailabilitySteps read_policy(const PolicyRow& row, Spec& spec, std::int64_t minibatch) {
  AvailabilitySteps options = row.read(spec, minibatch);
  options.minibatch = minibatch;
  options.quantum = spec.whole("quantum", options.quantum, 1, kMaxCores);
  options.seconds_per_step = spec.real("seconds-per-step", Unset{"60"}, kStepSeconds);
  options.steps_per_sample =
      spec.whole("steps-per-sample", Unset{"not used"}, 1, kMostStepsPerSample);
  options.max_cores = spec.whole("max-cores", Unset{"no limit"}, 1, kMaxCores);
  options.on_zero = spec.choice("on-zero", options.on_zero, kOnZeros);
  return options;
}

// The time of a step, as a fraction: `microseconds` for `steps` steps.
struct StepTime {
  std::int64_t microseconds;
  std::int64_t steps;

  // The number of steps that begin before `time`, in microseconds.
  [[nodiscard]] std::int64_t begun_before(std::int64_t time) const {
    return (time * steps + microseconds - 1) / microseconds;
  }
};

// `value` scaled by limit / most if `most` is above `limit`: rounded to the nearest (a half up),
// from 1 to `limit`.
std::int64_t scaled(std::int64_t value, std::int64_t most, std::int64_t limit) {
  if (most <= limit) return std::min(value, limit);
  const double share = static_cast<double>(value) * static_cast<double>(limit);
  return std::clamp<std::int64_t>(std::llround(share / static_cast<double>(most)), 1, limit);
}

std::string devices_text(std::int64_t count) {
  return count == 1 ? "a device" : fmt::format("{} devices", count);
}

[[noreturn]] void fail_of(std::string_view source, std::string_view wrong,
                          std::string_view accepted) {
  throw_error("{}: {}; accepted: {}", source, wrong, accepted);
}

class StepMaker {
 public:
  StepMaker(const Availability& availability, const AvailabilitySteps& options)
      : availability_(availability),
        options_(options),
        step_of_(availability, options),
        time_(step_time()) {}

  [[nodiscard]] std::vector<TraceStep> steps() const {
    const std::vector<AvailabilityChange>& changes = availability_.changes();
    const std::int64_t length = microseconds_of(availability_.length());
    if (time_.begun_before(length) > kMostSteps) {
      fail(fmt::format("it has room for {} steps", time_.begun_before(length)),
           fmt::format("up to {}: with a larger seconds-per-step, or fewer steps-per-sample",
                       kMostSteps));
    }
    std::vector<TraceStep> steps;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const std::int64_t begin = microseconds_of(changes[i].seconds);
      const std::int64_t end =
          i + 1 < changes.size() ? microseconds_of(changes[i + 1].seconds) : length;
      const std::int64_t count = time_.begun_before(end) - time_.begun_before(begin);
      if (count == 0) continue;
      if (const auto step = step_of_(changes[i].devices)) {
        steps.insert(steps.end(), static_cast<std::size_t>(count), *step);
      } else if (options_.on_zero == OnZero::error) {
        fail(fmt::format("there are {} devices at {} s", changes[i].devices, changes[i].seconds),
             fmt::format("{} and more, or on-zero=drop", options_.quantum));
      }
    }
    if (steps.empty()) {
      fail(fmt::format("no step has {}", devices_text(options_.quantum)),
           "devices at the start of a step: a smaller quantum, or shorter steps");
    }
    return steps;
  }

  [[nodiscard]] std::string scaling() const { return step_of_.scaling(); }

 private:
  [[noreturn]] void fail(std::string_view wrong, std::string_view accepted) const {
    fail_of(availability_.source(), wrong, accepted);
  }

  [[nodiscard]] StepTime step_time() const {
    if (!options_.steps_per_sample) {
      const double seconds = options_.seconds_per_step.value_or(kDefaultSecondsPerStep);
      if (!kStepSeconds.holds(seconds)) {
        fail(fmt::format("seconds-per-step is {}", seconds), kStepSeconds.words);
      }
      return {microseconds_of(seconds), 1};
    }
    if (options_.seconds_per_step) {
      fail("seconds-per-step and steps-per-sample exclude each other", "one of them");
    }
    if (!availability_.sample_gap()) {
      fail("steps-per-sample: it has no samples at regular intervals", "seconds-per-step");
    }
    const std::int64_t steps = *options_.steps_per_sample;
    if (steps < 1 || steps > kMostStepsPerSample) {
      fail(fmt::format("steps-per-sample is {}", steps), whole_range(1, kMostStepsPerSample));
    }
    return {microseconds_of(*availability_.sample_gap()), steps};
  }

  const Availability& availability_;
  const AvailabilitySteps& options_;
  StepOfDeviceCount step_of_;
  StepTime time_;
};

}  // namespace

StepOfDeviceCount::StepOfDeviceCount(const Zones& zones, const AvailabilitySteps& options)
    : options_(options), source_(zones.source()) {
  require_one("quantum", options_.quantum, kMaxCores);
  for (const auto& [name, availability] : zones.all()) {
    for (const AvailabilityChange& change : availability.changes()) {
      const std::int64_t workers = change.devices / options_.quantum;
      // Devices that are only held after the end have no step in a trace.
      if (change.seconds < availability.length()) most_workers_ = std::max(most_workers_, workers);
      if (availability.lasts(change)) largest_workers_ = std::max(largest_workers_, workers);
    }
  }
  check_limits();
}

void StepOfDeviceCount::require_one(std::string_view name, std::int64_t value,
                                    std::int64_t most) const {
  if (value >= 1 && value <= most) return;
  fail_of(source_, fmt::format("{} is {}", name, value), whole_range(1, most));
}

void StepOfDeviceCount::check_limits() const {
  require_one("the minibatch size", options_.minibatch, kMaxBatchSize);
  if (options_.max_cores && *options_.max_cores < options_.quantum) {
    fail_of(source_,
            fmt::format("max-cores is {}, less than the {} of a worker", *options_.max_cores,
                        devices_text(options_.quantum)),
            fmt::format("{} and more", options_.quantum));
  }
  if (options_.policy == ScalingPolicy::strong) {
    require_one("batch", options_.batch, kMaxBatchSize);
    require_multiple("batch is", options_.batch);
    return;
  }
  require_one("samples-per-device", options_.samples_per_device, kMaxBatchSize);
  if (options_.max_batch && *options_.max_batch < options_.minibatch) {
    fail_of(source_,
            fmt::format("max-batch is {}, less than a minibatch of {}", *options_.max_batch,
                        options_.minibatch),
            fmt::format("{} and more", options_.minibatch));
  }
  if (!scales_batch()) {
    require_multiple("a worker's share of the batch is",
                     options_.quantum * options_.samples_per_device);
  }
}

void StepOfDeviceCount::require_multiple(std::string_view what, std::int64_t samples) const {
  if (samples % options_.minibatch == 0) return;
  fail_of(source_, fmt::format("{} {} samples", what, samples),
          fmt::format("a multiple of the minibatch size, {}", options_.minibatch));
}

std::int64_t StepOfDeviceCount::most_of_limit() const {
  return options_.max_cores.value_or(kMaxCores) / options_.quantum;
}

std::int64_t StepOfDeviceCount::cores_of(std::int64_t workers) const {
  return scaled(workers, most_workers_, most_of_limit()) * options_.quantum;
}

std::int64_t StepOfDeviceCount::most_samples() const {
  return cores_of(most_workers_) * options_.samples_per_device;
}

bool StepOfDeviceCount::scales_batch() const {
  return options_.policy == ScalingPolicy::weak && options_.max_batch &&
         most_samples() > *options_.max_batch;
}

std::int64_t StepOfDeviceCount::batch_of(std::int64_t cores) const {
  if (options_.policy == ScalingPolicy::strong) return options_.batch;
  const std::int64_t samples = cores * options_.samples_per_device;
  if (!options_.max_batch) return samples;
  const std::int64_t limit = *options_.max_batch / options_.minibatch;
  if (!scales_batch()) return std::min(samples, limit * options_.minibatch);
  return scaled(samples, most_samples(), limit) * options_.minibatch;
}

std::string StepOfDeviceCount::scaling() const {
  std::string text;
  if (most_workers_ > most_of_limit()) {
    text =
        fmt::format("cores scaled by {}/{} to fit max-cores={}", most_of_limit() * options_.quantum,
                    most_workers_ * options_.quantum, *options_.max_cores);
  }
  if (scales_batch()) {
    text += fmt::format("{}batches scaled by {}/{} to fit max-batch={}", text.empty() ? "" : ", ",
                        *options_.max_batch / options_.minibatch * options_.minibatch,
                        most_samples(), *options_.max_batch);
  }
  return text;
}

std::optional<TraceStep> StepOfDeviceCount::operator()(std::int64_t devices) const {
  const std::int64_t workers = devices / options_.quantum;
  if (workers == 0) return std::nullopt;
  const std::int64_t cores = cores_of(workers);
  const std::int64_t batch = batch_of(cores);
  if (batch > kMaxBatchSize) {
    fail_of(source_,
            fmt::format("{} devices with {} samples each", cores, options_.samples_per_device),
            fmt::format("a batch of up to {}", kMaxBatchSize));
  }
  return TraceStep{.batch_size = batch, .cores = cores};
}

std::int64_t StepOfDeviceCount::max_batch() const {
  return batch_of(cores_of(std::max<std::int64_t>(1, largest_workers_)));
}

template <>
AvailabilityChoice AvailabilityChoice::built_in(std::string_view text) {
  const Spec spec(text.empty() ? kPolicies.front().name : text);
  const PolicyRow& row = find_row("policy", spec.name(), kPolicies);
  const auto make = [spec, &row](std::int64_t minibatch) {
    Spec arguments = spec;
    auto options = std::make_unique<AvailabilitySteps>(read_policy(row, arguments, minibatch));
    arguments.finish();
    if (options->steps_per_sample) {
      arguments.refuse("seconds-per-step", "steps-per-sample is given; accepted: one of them");
    }
    return options;
  };
  return {text, {spec.name()}, make, 1};
}

std::vector<Strategy> scaling_policies() {
  constexpr std::int64_t kAnyMinibatch = 32;
  return strategies_of(kPolicies, [](const PolicyRow& row, Spec& spec) {
    static_cast<void>(read_policy(row, spec, kAnyMinibatch));
  });
}

Trace to_steps(const Availability& availability, const AvailabilitySteps& options) {
  const StepMaker maker(availability, options);
  return Trace(maker.steps(), availability.end(), availability.source(), maker.scaling());
}

}  // namespace rubato
