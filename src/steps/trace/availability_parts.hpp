#pragma once

#include <optional>
#include <vector>

#include <rubato/steps/availability.hpp>

namespace rubato::detail {

/// The parts of an availability except its name and what follows its end; read by an importer or
/// made by a generator.
struct AvailabilityParts {
  std::vector<AvailabilityChange> changes{};
  /// The length in seconds.
  double length = 0;
  std::optional<double> sample_gap{};
};

}  // namespace rubato::detail
