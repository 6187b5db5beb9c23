#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <rubato/runs/run_configuration.hpp>

#include "run_option.hpp"
#include "toml.hpp"

namespace rubato {

// Parts of the reader of configuration files, for other files that contain options of runs.

/// Sets the option that a line of a file names. Throws Error, without file and line, for an unknown
/// option, a value of the wrong type or one out of its range; see read_configuration().
void set_option(RunConfiguration& configuration, const TomlEntry& entry,
                std::span<const std::string_view> arguments_only = {});

/// The key of the line that names plug-ins.
inline constexpr std::string_view kPluginOption = "plugin";
/// Loads the plug-ins that this line of the file `source` names; if the configuration has plug-ins
/// already, these replace the line's. Throws Error with file and line.
void load_named_plugins(RunConfiguration& configuration, const TomlEntry& line,
                        const std::filesystem::path& source);

/// The text of an option's value as TOML. Throws Error for text that is not UTF-8.
[[nodiscard]] std::string toml_value(const RunOption& option, const std::string& text);

/// Applies `map` to the path of each file that the options of a configuration name.
[[nodiscard]] RunConfiguration map_paths(RunConfiguration configuration, const PathMap& map);

/// The text of a configuration file or of a pipe. Throws Error with the system's reason if it
/// cannot be read, and if it is larger than 1 MiB.
[[nodiscard]] std::string configuration_text(const std::filesystem::path& file);

/// The folder to which the paths in a configuration are relative: that of the file, or the working
/// folder if it is a pipe or another stream of the process, such as /dev/stdin.
[[nodiscard]] std::filesystem::path folder_of_names(const std::filesystem::path& file);

/// The source from which a run continues.
enum class ResumeFrom {
  /// A checkpoint; the contents of data, trace and files are compared with it.
  checkpoint,
  /// The configuration alone, if the run has produced nothing yet: data, trace and files must be
  /// those that it names.
  configuration,
};

/// Throws Error if a run of the configuration `before` cannot continue with `now`, naming each
/// option that differs and those that may be changed. The paths of both must be of one kind: see
/// with_paths_from().
void require_resumable(const RunConfiguration& before, const RunConfiguration& now,
                       ResumeFrom from);

}  // namespace rubato
