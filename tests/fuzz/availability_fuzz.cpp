// parse_availability(): refuses a text with an Error, or reads it; what it has read it writes, and
// reads again. The first byte asks for a format, for the sum of all columns, or for neither.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string_view>

#include <rubato/base/error.hpp>
#include <rubato/steps/availability.hpp>

#include "base/core/check.hpp"

namespace {

using rubato::Availability;

void follow(const Availability& availability) {
  // From change to change, and not for ever.
  constexpr int kMostChanges = 1000;
  std::optional<double> time = 0;
  constexpr double kLatest = 3e9;
  for (int i = 0; i < kMostChanges && time && *time < kLatest; ++i) {
    const std::optional<std::int64_t> now = availability.at(*time);
    const std::optional<double> next = availability.next_change(*time);
    RUBATO_CHECK(!next || *next > *time, "time goes on");
    RUBATO_CHECK(!next || *next > kLatest || availability.at(*next) != now, "a change is one");
    time = next;
  }
}

void write_and_read(const Availability& availability) {
  std::ostringstream csv;
  availability.write_csv(csv);
  const Availability again = rubato::parse_availability(csv.str(), "again.csv");
  RUBATO_CHECK(again.changes() == availability.changes() && again.length() == availability.length(),
               "an availability is written as it is read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::optional<rubato::AvailabilityFormat> format;
  if (data[0] >= 'a' && data[0] < 'a' + rubato::kAvailabilityFormats.size()) {
    format = rubato::kAvailabilityFormats[static_cast<std::size_t>(data[0] - 'a')].value;
  }
  const rubato::DeviceColumns columns{.zone = data[0] == 'z' ? "all" : ""};
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    const Availability availability =
        rubato::parse_availability(text, "a.csv", format, rubato::TraceEnd::cycle, columns);
    write_and_read(availability);
    follow(availability);
    // A thousand steps at most.
    static_cast<void>(rubato::to_steps(
        availability, {.quantum = 2, .seconds_per_step = availability.length() / 1e3 + 0.001}));
  } catch (const rubato::Error&) {
    // As it should be.
  }
  return 0;
}
