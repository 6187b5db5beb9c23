#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"

namespace rubato {

struct RunConfiguration;

/// A shared library with an entry point (RUBATO_PLUGIN).
struct Plugin {
  std::filesystem::path file;
  /// The SHA-256 that its content must have; empty if none was given.
  std::string sha256{};
};

/// Parses "FILE.so,sha256=HEX:OTHER.so": files with or without their hashes, joined with ':'; empty
/// text means none. Throws Error for another form.
[[nodiscard]] std::vector<Plugin> parse_plugins(const std::string& text);
/// The inverse of parse_plugins().
[[nodiscard]] std::string to_text(const std::vector<Plugin>& plugins);

/// Returns "--plugin a.so, b.so"; empty without plug-ins.
[[nodiscard]] std::string in_words(const std::vector<Plugin>& plugins);

/// To be called in a handler of an exception thrown where plug-ins take part
/// (RunConfiguration::plugin): rethrows Errors and lack of memory as they are, and anything else as
/// an Error that names the plug-ins; without plug-ins, everything as it is.
[[noreturn]] void rethrow_of_plugins(const std::vector<Plugin>& plugins);

/// The text of --plugin with its files mapped by `map`.
[[nodiscard]] std::string map_plugins(const std::string& text, const PathMap& map);

/// Loads a plug-in, adds its parts to `extensions` and sets its hash. Throws Error as
/// load_plugins() does, and then leaves `extensions` as it was.
void load_plugin(Plugin& plugin, Extensions& extensions);

/// Loads further plug-ins in addition to those of a configuration, as load_plugins() does. Throws
/// Error, and then leaves the configuration as it was.
void add_plugins(RunConfiguration& configuration, const std::string& text);

/// The bytes of a loaded plug-in with its hash. Throws Error if it is not loaded, or the file has
/// changed since.
[[nodiscard]] std::string content_of(const Plugin& plugin);

}  // namespace rubato
