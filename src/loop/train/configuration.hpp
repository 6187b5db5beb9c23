#pragma once

#include <string>

#include <rubato/loop/trainer.hpp>

namespace rubato {

/// Returns all options that decide the bits of a training, as lines "name = value". A state is
/// bound to them, besides the contents of the trace and the data (bind_data()). The number of
/// epochs is not among them, and neither are the options that decide who computes what.
[[nodiscard]] std::string configuration_of(const TrainOptions& options, const Objective& objective);

/// Throws Error, naming all lines that differ, if `saved` is not `own`.
void require_same_configuration(const std::string& saved, const std::string& own);

}  // namespace rubato
