#pragma once

#include <rubato/runs/workload.hpp>

#include "clients/app/line/exit_code.hpp"
#include "clients/app/train/train_arguments.hpp"

namespace rubato::app {

/// `rubato calibrate`: measures how long a substep and an update of the workload take on one thread
/// of this machine, and prints the times in the form that --cluster takes. Throws as calibrate()
/// does.
ExitCode calibrate(const TrainArguments& arguments, const LoadWorkload& load);

}  // namespace rubato::app
