#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <rubato/config/run_configuration.hpp>

namespace rubato {

// A configuration file is TOML: a line `name = value` for each option that differs from its
// default. Numbers and true and false stand as they are, everything else in quotes; a whole number
// beyond TOML's, of 64 bits with a sign, may stand in quotes, too.

/// Reads a configuration file. Relative paths in it are relative to its folder. Throws Error with
/// file and line for what is no TOML, an unknown option, a value of the wrong type or out of its
/// range, and for an option that stands there twice. Names among `arguments_only` get an answer of
/// their own: a program takes them, but not from a file.
///
/// Names are read by the extensions of `around`, to which come those of the plug-ins that the file
/// names: these are loaded, as load_plugins() does. Where `around` has plug-ins, they stand in the
/// place of the file's.
[[nodiscard]] RunConfiguration read_configuration(
    const std::filesystem::path& file, std::span<const std::string_view> arguments_only = {},
    const RunConfiguration& around = {});

/// The same for text at hand; `source` stands for the file's name in messages. Paths are left as
/// they are, and nothing is loaded.
[[nodiscard]] RunConfiguration parse_configuration(
    std::string_view text, const std::string& source,
    std::span<const std::string_view> arguments_only = {}, const Extensions& extensions = {});

/// The configuration with its paths as a file in `folder` should have them, so that the folder may
/// be moved: relative to it for what is inside, absolute for everything else.
[[nodiscard]] RunConfiguration with_paths_from(const std::filesystem::path& folder,
                                               RunConfiguration configuration);

/// The text of a configuration file with all options that are set: parse_configuration() reads it
/// back to the same values. Throws Error for text that TOML cannot hold, which is UTF-8.
[[nodiscard]] std::string to_toml(const RunConfiguration& configuration);

}  // namespace rubato
