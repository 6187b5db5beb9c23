#pragma once

#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "clients/app/train/train_arguments.hpp"

namespace rubato::app {

/// Trains the first steps of a configuration in several ways that must not matter, prints a hash of
/// each result, and says where the first difference is. Throws Error for a mistake of the user.
[[nodiscard]] ExitCode verify(const TrainArguments& arguments, const LoadWorkload& load);

}  // namespace rubato::app
