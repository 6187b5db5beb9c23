#pragma once

#include <rubato/runs/run_configuration.hpp>

#include "command_line.hpp"
#include "runs/config/run_option.hpp"

namespace rubato::app {

/// Adds the options of a run to `line`, which is to read them into `configuration`; both must
/// outlive its parse().
void define_run_options(CommandLine& line, RunConfiguration& configuration);

/// Adds --plugin alone, which is read before all others: plug-ins come to `configuration` as they
/// are loaded.
void define_plugins(CommandLine& line, RunConfiguration& configuration);

/// Adds those that the command takes.
void define_run_options(CommandLine& line, RunConfiguration& configuration, Commands command);

}  // namespace rubato::app
