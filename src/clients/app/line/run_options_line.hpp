#pragma once

#include <rubato/runs/run_configuration.hpp>

#include "command_line.hpp"
#include "runs/config/run_option.hpp"

namespace rubato::app {

/// Adds the options of a run to `line`, which reads them into `configuration`; both must outlive
/// its parse().
void define_run_options(CommandLine& line, RunConfiguration& configuration);

/// Adds --plugin alone. It is read before all others, and plug-ins are loaded into `configuration`
/// at once.
void define_plugins(CommandLine& line, RunConfiguration& configuration);

/// The options of `line` other than those of a run, by name.
[[nodiscard]] std::vector<OptionHelp> own_options(const CommandLine& line);

/// Adds the options of a run that the command takes.
void define_run_options(CommandLine& line, RunConfiguration& configuration, Commands command);

/// Adds --threads, and the options that may be different in a fork and then change its bits;
/// without
/// --plugin and --kernels, which hold for the whole process.
void define_fork_options(CommandLine& line, RunConfiguration& configuration);

}  // namespace rubato::app
