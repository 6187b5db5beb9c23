// A plug-in is loaded with RTLD_LOCAL and contains its own copy of rubato's static libraries; only
// its two entry points, rubato_plugin_abi and rubato_plugin, are looked up by name (docs/adr/0056).
// The SHA-256 is compared before any of its code runs, and the ABI before its parts are added. It
// adds them to a copy of the extensions, which replaces the original only if nothing was thrown.
// The library is never closed: its functions are called as long as there are copies of these parts.

#include "plugin.hpp"

#include <exception>
#include <string_view>
#include <system_error>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/core/limits.hpp"
#include "base/core/text/text.hpp"
#include "base/core/throw_error.hpp"
#include "base/state/sha256.hpp"
#include "readings.hpp"

namespace rubato {

namespace {

constexpr std::string_view kHash = ",sha256=";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kHashDigits = 64;
constexpr PluginAbi kThis{RUBATO_PLUGIN_ABI, __GXX_ABI_VERSION, _GLIBCXX_USE_CXX11_ABI};

bool is_hash(std::string_view text) {
  return text.size() == kHashDigits && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

std::string words_of(const PluginAbi& abi) {
  return fmt::format("rubato {}, C++ ABI {}/{}", abi.rubato, abi.compiler, abi.library);
}

bool is_this(const PluginAbi& abi) {
  return std::string_view(abi.rubato) == kThis.rubato && abi.compiler == kThis.compiler &&
         abi.library == kThis.library;
}

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

void* opened(const std::filesystem::path& file) {
  // dlopen() does not search for a path that contains a slash.
  const std::string path = (file.has_parent_path() ? file : "." / file).string();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  // Only one thread reads a configuration.
  const char* const why = dlerror();  // NOLINT(concurrency-mt-unsafe)
  std::string_view reason = why == nullptr ? "unknown error" : why;
  if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);
  throw_error("cannot load {}: {}; accepted: a shared library", file.string(), reason);
}

void require_content(const Plugin& plugin, const std::string& sha256) {
  if (plugin.sha256.empty() || plugin.sha256 == sha256) return;
  throw_error("{} has the SHA-256 {}, not {}; accepted: the file as it was", plugin.file.string(),
              sha256, plugin.sha256);
}

}  // namespace

std::vector<Plugin> parse_plugins(const std::string& text) {
  std::vector<Plugin> plugins;
  if (text.empty()) return plugins;
  for (const std::string_view part : split_at(text, ':')) {
    const std::size_t hash = part.rfind(kHash);
    Plugin plugin{.file = part.substr(0, hash)};
    if (hash != std::string_view::npos) plugin.sha256 = part.substr(hash + kHash.size());
    if (plugin.file.empty() || (hash != std::string_view::npos && !is_hash(plugin.sha256))) {
      throw_error(
          "'{}' is not a plug-in; accepted: FILE.so, with or without ,sha256= and 64 hexadecimal "
          "digits, several with ':' between them",
          part);
    }
    plugins.push_back(std::move(plugin));
  }
  return plugins;
}

std::string to_text(const std::vector<Plugin>& plugins) {
  std::string text;
  for (const Plugin& plugin : plugins) {
    if (!text.empty()) text += ':';
    text += plugin.file.string();
    if (!plugin.sha256.empty()) text.append(kHash).append(plugin.sha256);
  }
  return text;
}

std::string in_words(const std::vector<Plugin>& plugins) {
  std::string text;
  for (const Plugin& plugin : plugins) {
    text += (text.empty() ? "--plugin " : ", ") + plugin.file.string();
  }
  return text;
}

void rethrow_of_plugins(const std::vector<Plugin>& plugins) {
  if (plugins.empty()) throw;
  const std::string who = in_words(plugins);
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    throw_error("{}: {}", who, error.what());
  } catch (...) {
    throw Error(who + " throws something that is not a std::exception");
  }
}

RUBATO_PARSE(parse_plugins(text), std::vector<Plugin>)

std::string map_plugins(const std::string& text, const PathMap& map) {
  std::vector<Plugin> plugins = parse_plugins(text);
  for (Plugin& plugin : plugins) plugin.file = map(plugin.file);
  return to_text(plugins);
}

void load_plugin(Plugin& plugin, Extensions& extensions) {
  const std::string name = plugin.file.string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(plugin.file, ignored)) {
    require_visible("", plugin.file);
    throw_error("no such file as {}; accepted: a shared library", name);
  }
  std::string sha256 = Sha256::hex_of_file(plugin.file);
  // The check comes before any of the plug-in's code runs.
  require_content(plugin, sha256);
  void* const library = opened(plugin.file);
  auto* const abi = symbol<PluginAbi()>(library, "rubato_plugin_abi");
  auto* const add = symbol<void(Extensions&)>(library, "rubato_plugin");
  if (abi == nullptr || add == nullptr) {
    throw_error(
        "{} is not a plug-in of rubato; accepted: a library with an entry point, RUBATO_PLUGIN "
        "(docs/extending.md)",
        name);
  }
  if (const PluginAbi its = abi(); !is_this(its)) {
    throw_error("{} was compiled for {}, and this is {}; accepted: one compiled anew", name,
                words_of(its), words_of(kThis));
  }
  Extensions with = extensions;
  try {
    add(with);
  } catch (const std::exception& error) {
    throw_error("{}: {}", name, error.what());
  } catch (...) {
    throw_error("{} throws something that is not a std::exception", name);
  }
  extensions = std::move(with);
  plugin.sha256 = std::move(sha256);
}

std::string content_of(const Plugin& plugin) {
  if (plugin.sha256.empty()) {
    throw_error("--plugin: {} is not loaded; accepted: after load_plugins()", plugin.file.string());
  }
  std::string content = read_file(plugin.file);
  require_content(plugin, Sha256::hex_of(content));
  return content;
}

void add_plugins(RunConfiguration& configuration, const std::string& text) {
  std::vector<Plugin> plugins = *configuration.plugin;
  Extensions extensions = configuration.extensions;
  for (Plugin& plugin : parse_plugins(text)) {
    load_plugin(plugin, extensions);
    plugins.push_back(std::move(plugin));
  }
  configuration.extensions = std::move(extensions);
  configuration.plugin = to_text(plugins);
}

void load_plugins(RunConfiguration& configuration) {
  add_plugins(configuration, std::exchange(configuration.plugin, {}).text());
}

}  // namespace rubato
