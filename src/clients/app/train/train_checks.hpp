#pragma once

#include "clients/app/line/command_line.hpp"
#include "train_arguments.hpp"

namespace rubato::app {

/// What has to fit together among the arguments that `line` has read, each of which is in its
/// range. Throws Error for those that contradict each other or the file system, and for those that
/// would do nothing (idle_options.hpp).
void check_together(const TrainArguments& arguments, const CommandLine& line, TrainCommand command);

}  // namespace rubato::app
