#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <rubato/steps/availability.hpp>

#include "base/core/text/text_reader.hpp"

namespace rubato {

/// The life of a machine.
struct MachineLife {
  double hours = 0;
  /// True if the provider ended it; otherwise it might have lived longer.
  bool preempted = false;
  /// Its beginning, in hours since a moment that is the same for all.
  std::optional<double> begin{};
};

/// Reads machines from a file (or pipe) for fitting: the lives of machines from JSON lines or from
/// events, in the order of the file, or an availability from samples. docs/traces.md describes the
/// formats. Throws Error with file, line and what would be accepted.
[[nodiscard]] std::variant<std::vector<MachineLife>, Availability> read_machines(
    const std::filesystem::path& path, std::optional<AvailabilityFormat> format,
    const DeviceColumns& columns);

namespace detail {

/// The importer of events, which read_availability() reads, too.
[[nodiscard]] std::vector<MachineLife> import_lives(TextReader& reader);

}  // namespace detail

}  // namespace rubato
