#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "steps/trace/availability_parts.hpp"

namespace rubato::detail {

/// Generates an availability from arguments that have been read.
using Generation = std::function<AvailabilityParts()>;

// The readers of the generators' arguments, one for each generator.
[[nodiscard]] Generation read_constant(Spec& spec);
[[nodiscard]] Generation read_steps(Spec& spec);
[[nodiscard]] Generation read_saw(Spec& spec);
[[nodiscard]] Generation read_walk(Spec& spec);
[[nodiscard]] Generation read_spot(Spec& spec);
[[nodiscard]] Generation read_daily(Spec& spec);

// Arguments that several generators have in common.

/// The length, in seconds.
[[nodiscard]] double read_hours(Spec& spec);
/// Seconds between two samples; throws Error if `length` would have more than ten million of them.
[[nodiscard]] std::int64_t read_every(Spec& spec, std::int64_t fallback, double length);
[[nodiscard]] std::int64_t read_seed(Spec& spec);

/// A stream of random numbers that depends on the seed and the stream only.
class Draws {
 public:
  Draws(std::int64_t seed, std::int64_t stream) : seed_(seed), stream_(stream) {}

  /// A number from 0 to below 1.
  [[nodiscard]] double share();
  /// A whole number from `low` to `high`, which are at most 2^32 apart.
  [[nodiscard]] std::int64_t whole(std::int64_t low, std::int64_t high);

 private:
  std::int64_t seed_;
  std::int64_t stream_;
  std::int64_t drawn_ = 0;
};

/// The largest number of changes; more are most likely a typing error.
inline constexpr std::int64_t kMostChanges = 10'000'000;

}  // namespace rubato::detail
