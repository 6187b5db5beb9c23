#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "clients/app/line/command_line.hpp"
#include "clients/app/train/hosts/host_arguments.hpp"
#include "runs/run/run_request.hpp"

namespace rubato::app {

/// What `rubato train` and its like were asked for: the run, and what is of this one command.
struct TrainArguments : RunRequest {
  bool quiet = false;
  bool verbose = false;
  /// Of `rubato verify`: steps in each training.
  std::int64_t steps = 24;
  /// Of `rubato calibrate`: what the seconds are multiplied by.
  double factor = 1;
  /// Of `rubato train`: this process among several hosts.
  HostArguments hosts;

  friend bool operator==(const TrainArguments&, const TrainArguments&) = default;
};

/// The commands that take these arguments.
enum class TrainCommand { train, verify, calibrate };

/// Reads the arguments behind such a command, with the configuration that --config names, or that
/// of the run that --resume names. Throws HelpAsked, and Error for what the user got wrong, without
/// looking into the trace or the data.
[[nodiscard]] TrainArguments parse_train_arguments(std::span<const std::string> arguments,
                                                   TrainCommand command = TrainCommand::train);

/// What a command takes beside the options of a run, by name.
[[nodiscard]] std::vector<OptionHelp> own_options(TrainCommand command);

}  // namespace rubato::app
