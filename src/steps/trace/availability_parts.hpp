#pragma once

#include <optional>
#include <vector>

#include <rubato/steps/availability.hpp>

namespace rubato::detail {

/// What an availability is made of, but for its name and what follows its end: read by an importer
/// or made by a generator.
struct AvailabilityParts {
  std::vector<AvailabilityChange> changes{};
  /// Seconds.
  double length = 0;
  std::optional<double> sample_gap{};
};

}  // namespace rubato::detail
