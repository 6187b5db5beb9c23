// Each line of a configuration file is read by set() of its row in run_options() and written by
// text(), so that a new option needs no code here. Plug-ins are loaded first, because other lines
// may use the names that they add. Paths are mapped in a second pass over all options that can name
// a file (map_paths()): to the file's folder after reading, and by with_paths_from() before
// writing. A resume compares two configurations by the texts of their options.

#include "configuration_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "plugin.hpp"
#include "run_option.hpp"
#include "toml.hpp"

namespace rubato {

namespace {

using std::filesystem::path;

constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

// Whether TOML can represent the number in `text`: its whole numbers have 64 bits with a sign.
bool fits_in_toml(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::result_out_of_range || end != text.data() + text.size();
}

bool is_quoted(const RunOption& option) {
  return option.kind == OptionKind::text || option.kind == OptionKind::text_or_number;
}

// The values that are accepted instead of one of a wrong type.
std::string accepted_by(const RunOption& option) {
  if (!is_quoted(option)) return option.accepted;
  return fmt::format("a string, such as {} = \"{}\"", option.name,
                     default_text(option).value_or(option.value));
}

// Checks that TOML's type is that of the option; set() checks everything else.
void check_type(const RunOption& option, const TomlEntry& entry) {
  const bool string = entry.type == TomlEntry::Type::string;
  if (string && !is_quoted(option)) {
    if (option.kind == OptionKind::whole && !fits_in_toml(entry.value)) return;
    throw_error("\"{}\" is a string; accepted: {}", entry.value, accepted_by(option));
  }
  const bool number = entry.type == TomlEntry::Type::number;
  if (!string && is_quoted(option) && !(number && option.kind == OptionKind::text_or_number)) {
    throw_error("{} is not a string; accepted: {}", entry.value, accepted_by(option));
  }
}

const RunOption& option_of(const TomlEntry& entry,
                           std::span<const std::string_view> arguments_only) {
  const auto options = run_options();
  const auto known = std::any_of(options.begin(), options.end(),
                                 [&](const RunOption& o) { return o.name == entry.key; });
  if (!known &&
      std::find(arguments_only.begin(), arguments_only.end(), entry.key) != arguments_only.end()) {
    throw_error("{} is accepted as an argument only", entry.key);
  }
  return run_option(entry.key);
}

}  // namespace

RunConfiguration map_paths(RunConfiguration configuration, const PathMap& map) {
  for (const RunOption& option : run_options()) {
    const auto text = option.text(configuration);
    if (option.map_path != nullptr && text) {
      option.set(configuration, option.map_path(*text, map));
    }
  }
  return configuration;
}

void set_option(RunConfiguration& configuration, const TomlEntry& entry,
                std::span<const std::string_view> arguments_only) {
  const RunOption& option = option_of(entry, arguments_only);
  try {
    check_type(option, entry);
    option.set(configuration, entry.value);
  } catch (const Error& error) {
    throw_error("{}: {}", option.name, error.what());
  }
}

std::string toml_value(const RunOption& option, const std::string& text) {
  return !is_quoted(option) && fits_in_toml(text) ? text : toml_string(text);
}

std::string configuration_text(const path& file) {
  const auto cannot_read = [&](int error) {
    return Error(
        fmt::format("cannot read the configuration {}: {}; accepted: a file of lines such as "
                    "'cores = 8'",
                    file.string(), std::generic_category().message(error)));
  };
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw cannot_read(errno);
  // Opening a folder succeeds.
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) throw cannot_read(EISDIR);
  std::string text(kMostBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw cannot_read(errno);
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMostBytes) {
    throw_error("{}: is larger than 1 MiB; accepted: a configuration", file.string());
  }
  return text;
}

path folder_of_names(const path& file) {
  std::error_code ignored;
  const std::string name = file.string();
  const bool is_stream = !std::filesystem::is_regular_file(file, ignored) ||
                         name.starts_with("/dev/") || name.starts_with("/proc/");
  return is_stream ? path() : file.parent_path();
}

void load_named_plugins(RunConfiguration& configuration, const TomlEntry& line,
                        const path& source) {
  if (!configuration.plugin.empty()) return;
  const path folder = folder_of_names(source);
  try {
    add_plugins(configuration,
                map_plugins(line.value, [&](const path& inside) { return folder / inside; }));
  } catch (const Error& error) {
    throw_error("{}:{}: {}: {}", source.string(), line.line, line.key, error.what());
  }
}

RunConfiguration read_configuration(const path& file,
                                    std::span<const std::string_view> arguments_only,
                                    const RunConfiguration& around) {
  const std::string text = configuration_text(file);
  RunConfiguration named{.plugin = around.plugin, .extensions = around.extensions};
  for (const TomlEntry& line : parse_toml(text, file.string())) {
    if (line.key == kPluginOption) load_named_plugins(named, line, file);
  }
  const path folder = folder_of_names(file);
  RunConfiguration read =
      map_paths(parse_configuration(text, file.string(), arguments_only, named.extensions),
                [&](const path& inside) { return folder / inside; });
  read.plugin = std::move(named.plugin);
  return read;
}

RunConfiguration parse_configuration(std::string_view text, const std::string& source,
                                     std::span<const std::string_view> arguments_only,
                                     const Extensions& extensions) {
  RunConfiguration configuration;
  configuration.extensions = extensions;
  for (const TomlEntry& entry : parse_toml(text, source)) {
    try {
      set_option(configuration, entry, arguments_only);
    } catch (const Error& error) {
      throw_error("{}:{}: {}", source, entry.line, error.what());
    }
  }
  return configuration;
}

RunConfiguration with_paths_from(const path& folder, RunConfiguration configuration) {
  const path base = absolute_path(folder);
  return map_paths(std::move(configuration), [&](const path& file) {
    const path whole = absolute_path(file);
    const path inside = whole.lexically_relative(base);
    return inside.empty() || *inside.begin() == ".." ? whole : inside;
  });
}

std::string to_toml(const RunConfiguration& configuration) {
  std::string text = "# Reproduces the run: rubato train --config FILE\n";
  for (const RunOption& option : run_options()) {
    const auto value = option.text(configuration);
    if (!value) continue;
    try {
      text += fmt::format("{} = {}\n", option.name, toml_value(option, *value));
    } catch (const Error& error) {
      throw_error("--{}: {}", option.name, error.what());
    }
  }
  return text;
}

void require_resumable(const RunConfiguration& before, const RunConfiguration& now,
                       ResumeFrom from) {
  std::vector<std::string> differences;
  std::vector<std::string> free;
  for (const RunOption& option : run_options()) {
    if (option.resume == OnResume::free) free.push_back("--" + option.name);
    const auto then = option.text(before);
    const auto is = option.text(now);
    if (option.resume == OnResume::free) continue;
    if (bound_text(option, before) == bound_text(option, now)) continue;
    // The checkpoint contains the contents of these files.
    const bool of_files = option.resume == OnResume::by_file && then && is &&
                          names_file(option, *then) && names_file(option, *is);
    const bool by_content = option.resume == OnResume::by_content || of_files;
    if (by_content && from == ResumeFrom::checkpoint) continue;
    differences.push_back(change_in_words(option, before, now));
  }
  if (differences.empty()) return;
  throw_error(
      "the run was trained with other options: {}\nmay be changed: {}{}",
      fmt::join(differences, ", "), fmt::join(free, ", "),
      from == ResumeFrom::checkpoint ? ", and rows of the trace that no step has used" : "");
}

}  // namespace rubato
