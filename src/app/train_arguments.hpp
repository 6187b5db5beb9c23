#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rubato/config/run_configuration.hpp>

#include "app/command_line.hpp"
#include "app/host_arguments.hpp"

namespace rubato::app {

/// What `rubato train` and its like were asked for: the run, and what is of this one command.
struct TrainArguments {
  RunConfiguration run;

  bool quiet = false;
  bool verbose = false;
  /// Of `rubato verify`: steps in each training.
  std::int64_t steps = 24;
  /// Of `rubato calibrate`: what the seconds are multiplied by.
  double factor = 1;
  /// The run folder; see run_folder().
  std::optional<std::filesystem::path> out;
  /// The run folder of a run to go on with, and the one of its checkpoints to go on from; empty for
  /// the newest good one.
  std::optional<std::filesystem::path> resume;
  std::optional<std::filesystem::path> checkpoint;

  /// Of `rubato train`: this process among several hosts.
  HostArguments hosts;

  GivenOptions given;

  friend bool operator==(const TrainArguments&, const TrainArguments&) = default;
};

/// The commands that take these arguments.
enum class TrainCommand { train, verify, calibrate };

/// Reads the arguments behind such a command, with the configuration that
/// --config names, or that of the run that --resume names. Empty when they ask for the help, which
/// is then printed. Throws Error for what the user got wrong, without looking into the trace or the
/// data.
[[nodiscard]] std::optional<TrainArguments> parse_train_arguments(
    std::span<const std::string> arguments, TrainCommand command = TrainCommand::train);

/// What a command takes beside the options of a run, by name.
[[nodiscard]] std::vector<CommandLine::Description> own_options(TrainCommand command);

/// The configuration of the run in a folder, not checked for what else it needs: it may name data
/// that lie elsewhere now. Throws Error where it cannot be read.
[[nodiscard]] RunConfiguration configuration_of(const std::filesystem::path& run);

}  // namespace rubato::app
