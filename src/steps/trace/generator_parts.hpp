#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "availability_parts.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/seconds.hpp"

namespace rubato::detail {

/// Generates an availability from arguments that have been read.
using Generation = std::function<AvailabilityParts()>;

/// The largest number of changes; more are most likely a typing error.
inline constexpr std::int64_t kMostChanges = 10'000'000;
inline constexpr auto kMostSeconds = static_cast<std::int64_t>(kMaxAvailabilitySeconds);
inline constexpr double kMostHours = kMaxAvailabilitySeconds / kSecondsOfHour;
inline constexpr RealRange kHours{0, kMostHours, false, true, "a number above 0 and up to 87660"};

/// A stream of random numbers that depends on the seed and the stream only.
class Draws {
 public:
  Draws(std::int64_t seed, std::int64_t stream) : seed_(seed), stream_(stream) {}

  /// A number from 0 to below 1.
  [[nodiscard]] double share() {
    const std::uint64_t bits = seed_of(static_cast<std::uint64_t>(seed_), {stream_, drawn_++});
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }
  /// A whole number from `low` to `high`, which are at most 2^32 apart.
  [[nodiscard]] std::int64_t whole(std::int64_t low, std::int64_t high) {
    const auto count = static_cast<double>(high - low + 1);
    return low + static_cast<std::int64_t>(std::floor(share() * count));
  }

 private:
  std::int64_t seed_;
  std::int64_t stream_;
  std::int64_t drawn_ = 0;
};

/// The length, in seconds.
[[nodiscard]] inline double read_hours(Spec& spec) {
  return kSecondsOfHour * spec.real("hours", 24, kHours);
}

[[nodiscard]] inline std::int64_t read_seed(Spec& spec) {
  return spec.whole("seed", 0, 0, std::numeric_limits<std::int64_t>::max());
}

/// The devices of a machine, of which there are up to `most`.
[[nodiscard]] inline std::int64_t read_machine(Spec& spec, std::int64_t most) {
  const std::int64_t machine = spec.whole("machine", 1, 1, kMaxCores);
  if (machine > kMaxCores / most) {
    spec.reject("machine",
                fmt::format("{} devices in each of {} machines; accepted: up to {} in all", machine,
                            most, kMaxCores));
  }
  return machine;
}

/// Reads the generator `machines`, in a file of its own.
[[nodiscard]] Generation read_machines(Spec& spec);

}  // namespace rubato::detail
