#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/steps/availability.hpp>

#include "availability_parts.hpp"
#include "base/core/portable_math.hpp"
#include "base/core/seconds.hpp"

namespace rubato {

namespace {

struct GeneratorRow {
  std::string_view name;
  std::string_view help;
  detail::Generation (*read)(Spec& spec);
};

constexpr std::array<GeneratorRow, 6> kGenerators{
    {{"constant", "always the same number of devices", detail::read_constant},
     {"steps", "one number of devices after the other, each for its time", detail::read_steps},
     {"saw", "down from high to low in equal levels, and up again", detail::read_saw},
     {"walk", "a random walk: every `every` seconds up or down by at most `move`, between bounds",
      detail::read_walk},
     {"spot",
      "a spot market: each device that is missing arrives, and each that is there is preempted, at "
      "random, up to `bulk` of them at once",
      detail::read_spot},
     {"daily", "a cycle of 24 hours, as of a cloud that others use by day", detail::read_daily}}};

}  // namespace

Availability generate_availability(const std::string& text, TraceEnd end) {
  Spec spec(text);
  const detail::Generation make = find_row("generator", spec.name(), kGenerators).read(spec);
  spec.finish();
  detail::AvailabilityParts made = make();
  return {std::move(made.changes), made.length, text, end, made.sample_gap};
}

void require_generator(const std::string& text) {
  Spec spec(text);
  static_cast<void>(find_row("generator", spec.name(), kGenerators).read(spec));
  spec.finish();
}

std::vector<Strategy> availability_generators() {
  return strategies_of(
      kGenerators, [](const GeneratorRow& row, Spec& spec) { static_cast<void>(row.read(spec)); });
}

bool is_generator(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  for (const GeneratorRow& row : kGenerators) {
    if (row.name == name) return true;
  }
  return false;
}

namespace detail {

namespace {

constexpr double kMostHours = kMaxAvailabilitySeconds / kSecondsOfHour;
constexpr RealRange kHours{0, kMostHours, false, true, "a number above 0 and up to 87660"};

}  // namespace

double read_hours(Spec& spec) {
  return kSecondsOfHour * spec.real("hours", 24, kHours);
}

std::int64_t read_every(Spec& spec, std::int64_t fallback, double length) {
  const std::int64_t every =
      spec.whole("every", fallback, 1, static_cast<std::int64_t>(kMaxAvailabilitySeconds));
  if (length / static_cast<double>(every) > static_cast<double>(kMostChanges)) {
    spec.reject("every", fmt::format("{} s is too often for {} hours; accepted: up to {} samples",
                                     every, length / kSecondsOfHour, kMostChanges));
  }
  return every;
}

std::int64_t read_seed(Spec& spec) {
  return spec.whole("seed", 0, 0, std::numeric_limits<std::int64_t>::max());
}

double Draws::share() {
  const std::uint64_t bits = seed_of(static_cast<std::uint64_t>(seed_), {stream_, drawn_++});
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::int64_t Draws::whole(std::int64_t low, std::int64_t high) {
  const auto count = static_cast<double>(high - low + 1);
  return low + static_cast<std::int64_t>(std::floor(share() * count));
}

}  // namespace detail

}  // namespace rubato
