#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

struct RunConfiguration;

/// A shared library with an entry point (RUBATO_PLUGIN).
struct Plugin {
  std::filesystem::path file;
  /// SHA-256 that its content is to have; empty where nobody has said.
  std::string sha256{};
};

/// "FILE.so,sha256=HEX:OTHER.so": files with or without their hashes, several with ':' between
/// them; empty text is none. Throws Error for another form.
[[nodiscard]] std::vector<Plugin> parse_plugins(const std::string& text);
/// The same backwards.
[[nodiscard]] std::string to_text(const std::vector<Plugin>& plugins);

/// "--plugin a.so, b.so"; empty without any.
[[nodiscard]] std::string in_words(const std::vector<Plugin>& plugins);

/// To be called in a handler of what was thrown where plug-ins take part
/// (RunConfiguration::plugin): rethrows Errors, and what says that there is no memory, as they are,
/// and anything else as an Error that names the plug-ins; without any, everything as it is.
[[noreturn]] void rethrow_of_plugins(const std::string& plugin);

/// parse_plugins() as the reading of an option, and the same text with its files mapped by `map`.
void require_plugins(const std::string& text);
[[nodiscard]] std::string map_plugins(
    const std::string& text,
    const std::function<std::filesystem::path(const std::filesystem::path&)>& map);

/// Loads a plug-in, adds its parts to `extensions` and sets its hash. Throws Error as
/// load_plugins() does; then `extensions` is as before.
void load_plugin(Plugin& plugin, Extensions& extensions);

/// load_plugins() of further ones, behind those that a configuration has. Throws Error as it does;
/// then the configuration is as before.
void add_plugins(RunConfiguration& configuration, const std::string& text);

/// The bytes of a plug-in that is loaded, with its hash. Throws Error where it is not, or the file
/// has changed since.
[[nodiscard]] std::string content_of(const Plugin& plugin);

}  // namespace rubato
