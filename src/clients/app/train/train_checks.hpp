#pragma once

#include "clients/app/line/command_line.hpp"
#include "train_arguments.hpp"

namespace rubato::app {

/// Checks that the arguments which `line` has read fit together; each is already known to be in its
/// range. Throws Error if they contradict each other or the file system, or would have no effect
/// (idle_options.hpp).
void check_together(const TrainArguments& arguments, const CommandLine& line, TrainCommand command);

}  // namespace rubato::app
