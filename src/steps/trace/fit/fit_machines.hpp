#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "machine_lives.hpp"
#include "steps/trace/life_law.hpp"

namespace rubato {

/// The number of machines over time, as the generators `machines` and `spot` describe it.
struct MachineCounts {
  /// The length of the record.
  double hours = 0;
  std::int64_t start = 0;
  std::int64_t most = 0;
  double mean = 0;
  /// Devices in a machine, as far as numbers of devices show it.
  std::int64_t machine = 1;
  /// The mean time until a missing machine arrives, in hours: the time of all that are missing at
  /// `most`, by the number of arrivals. Empty if none arrives.
  std::optional<double> wait{};
  /// The largest and the mean number of machines lost at once; 0 if none is lost.
  std::int64_t most_lost = 0;
  double mean_lost = 0;
};

/// The counts of machines from the first beginning to the last end; lives without a beginning do
/// not count. Empty if that leaves no time.
[[nodiscard]] std::optional<MachineCounts> counts_of(std::span<const MachineLife> lives);

/// The counts of an availability. The devices of a machine are the greatest common divisor of all
/// numbers of devices. Requires that there is ever a device.
[[nodiscard]] MachineCounts counts_of(const Availability& availability);
/// The hours of all machines of an availability between one loss and the next; the last ones end
/// without. If machines do not age and are lost independently of each other, they are exponential.
[[nodiscard]] std::vector<MachineLife> hours_between_losses(const Availability& availability,
                                                            const MachineCounts& counts);

/// The text of a generator of machines with this law, of `machine` devices each. Arguments that the
/// counts do not tell keep their defaults.
[[nodiscard]] std::string machines_text(const LifeLaw& law,
                                        const std::optional<MachineCounts>& counts,
                                        std::int64_t machine, double hours, std::int64_t seed);
/// The text of a generator `spot` with this exponential law of hours_between_losses().
[[nodiscard]] std::string spot_text(const LifeLaw& law, const MachineCounts& counts, double hours,
                                    std::int64_t seed);

}  // namespace rubato
