#pragma once

#include <rubato/run/workload.hpp>

#include "app/exit_code.hpp"
#include "app/train_arguments.hpp"

namespace rubato::app {

/// Trains as `arguments` say what `load` loads, shows how it goes on stdout, and leaves a run
/// folder. Throws Error for what the user got wrong; no run folder is made then.
[[nodiscard]] ExitCode train(const TrainArguments& arguments, const LoadWorkload& load);

}  // namespace rubato::app
