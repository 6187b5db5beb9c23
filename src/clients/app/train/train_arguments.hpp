#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "clients/app/hosts/host_arguments.hpp"
#include "clients/app/line/command_line.hpp"
#include "runs/run/run_request.hpp"

namespace rubato::app {

/// The arguments of `rubato train`, `verify` and `calibrate`: the run, and the options of the one
/// command.
struct TrainArguments : RunRequest {
  bool quiet = false;
  bool verbose = false;
  /// The number of steps in each training of `rubato verify`.
  std::int64_t steps = 24;
  /// The factor that `rubato calibrate` multiplies the seconds by.
  double factor = 1;
  /// The hosts of `rubato train`, and the place of this process among them.
  HostArguments hosts;

  friend bool operator==(const TrainArguments&, const TrainArguments&) = default;
};

/// The commands that take these arguments.
enum class TrainCommand { train, verify, calibrate };

/// Reads the arguments after the name of the command, with the configuration that --config names or
/// that of the run that --resume names. Throws HelpAsked, and Error for a mistake of the user;
/// trace and data are not read.
[[nodiscard]] TrainArguments parse_train_arguments(std::span<const std::string> arguments,
                                                   TrainCommand command = TrainCommand::train);

/// The options of a command other than those of a run, by name.
[[nodiscard]] std::vector<OptionHelp> own_options(TrainCommand command);

/// Checks that the arguments which `line` has read fit together; each is already known to be in its
/// range. Throws Error if they contradict each other or the file system, or would have no effect
/// (require_none_idle()).
void check_together(const TrainArguments& arguments, const CommandLine& line, TrainCommand command);

}  // namespace rubato::app
