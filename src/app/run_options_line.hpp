#pragma once

#include <span>
#include <string_view>

#include <rubato/config/run_configuration.hpp>

#include "app/command_line.hpp"

namespace rubato::app {

/// Adds the options of a run to `line`, or those under one heading alone, which is to read them
/// into `configuration`; both must outlive its parse().
void define_run_options(CommandLine& line, RunConfiguration& configuration,
                        std::string_view heading = {});

/// Adds --plugin alone, which is read before all others: plug-ins come to `configuration` as they
/// are loaded.
void define_plugins(CommandLine& line, RunConfiguration& configuration);

/// Adds the options of these names.
void define_run_options(CommandLine& line, RunConfiguration& configuration,
                        std::span<const std::string_view> names);

}  // namespace rubato::app
