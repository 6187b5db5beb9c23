#pragma once

#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "runs/run/computed_by.hpp"

namespace rubato {

/// The options that differ, of those on which the trained weights depend: without --exact, also
/// those that say who computes what. Files are compared by their content. The text of an option
/// that is not set is "not set".
[[nodiscard]] std::vector<NamedDifference> differing_options(const RunConfiguration& a,
                                                             const RunConfiguration& b);

}  // namespace rubato
