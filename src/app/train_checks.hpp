#pragma once

#include "app/command_line.hpp"
#include "app/train_options.hpp"

namespace rubato::app {

/// What has to fit together among the options that `line` has read, each of which is in its range.
/// Throws Error for those that contradict each other or the file system, and for arguments that
/// would do nothing (idle_options.hpp).
void check_together(const TrainCommandOptions& options, const CommandLine& line,
                    TrainCommand command);

}  // namespace rubato::app
