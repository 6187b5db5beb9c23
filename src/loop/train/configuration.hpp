#pragma once

#include <string>

#include <rubato/loop/trainer.hpp>

namespace rubato {

/// All options that decide the bits of a training, as lines "name = value": what a state is bound
/// to besides the contents of the trace and the data (binding.hpp). Epochs are not among them, nor
/// who computes it.
[[nodiscard]] std::string configuration_of(const TrainOptions& options, const Objective& objective);

/// Throws Error, naming all lines that differ, when `saved` is not `own`.
void require_same_configuration(const std::string& saved, const std::string& own);

}  // namespace rubato
