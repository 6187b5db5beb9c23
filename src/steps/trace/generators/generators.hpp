#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <rubato/base/spec.hpp>
#include <rubato/steps/availability.hpp>

#include "steps/trace/availability_parts.hpp"

namespace rubato::detail {

/// Makes it, when all that was to be read has been.
using Generation = std::function<AvailabilityParts()>;

// One for each generator: reads its arguments.
[[nodiscard]] Generation read_constant(Spec& spec);
[[nodiscard]] Generation read_steps(Spec& spec);
[[nodiscard]] Generation read_saw(Spec& spec);
[[nodiscard]] Generation read_walk(Spec& spec);
[[nodiscard]] Generation read_spot(Spec& spec);
[[nodiscard]] Generation read_daily(Spec& spec);

// Arguments that several have.

/// The length, in seconds.
[[nodiscard]] double read_hours(Spec& spec);
/// Seconds between two samples; with `length` no more than ten million of them.
[[nodiscard]] std::int64_t read_every(Spec& spec, std::int64_t fallback, double length);
[[nodiscard]] std::int64_t read_seed(Spec& spec);

/// A stream of random numbers, the same for each seed and stream wherever it is drawn.
class Draws {
 public:
  Draws(std::int64_t seed, std::int64_t stream) : seed_(seed), stream_(stream) {}

  /// From 0 to below 1.
  [[nodiscard]] double share();
  /// From `low` to `high`, which are at most 2^32 apart.
  [[nodiscard]] std::int64_t whole(std::int64_t low, std::int64_t high);

 private:
  std::int64_t seed_;
  std::int64_t stream_;
  std::int64_t drawn_ = 0;
};

/// More changes than that are refused: a typing error, in all likelihood.
inline constexpr std::int64_t kMostChanges = 10'000'000;

}  // namespace rubato::detail
