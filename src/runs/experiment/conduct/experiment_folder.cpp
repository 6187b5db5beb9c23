// The folder can be moved and can be shared: adopt() copies traces into it, configurations name
// these copies by relative paths, and all other paths are absolute. Every file is written by the
// worker, which renames it into place, because other processes may work in the folder at the same
// time. A trace or a configuration that is there already is kept, and compared with the new one:
// another content of a trace, or another option that affects bits, is an error.

#include "experiment_folder.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/core/file.hpp"
#include "base/core/throw_error.hpp"
#include "runs/config/run_option.hpp"
#include "runs/config/values/trace_source.hpp"
#include "runs/experiment/design/design_file.hpp"
#include "runs/experiment/design/value_list.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTraces = "traces";
constexpr const char* kShared = "shared";

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw_error("{}: cannot make the folder: {}", path.string(), error.message());
}

// A folder that another process is just making has no more than these folders, and in the first
// one those of workers, MACHINE.START.PROCESS.
bool is_being_made(const fs::path& path) {
  constexpr std::array<std::string_view, 3> kFirst{kWorkFolder, kTraces, kRunsFolder};
  const auto all_in = [](const fs::path& folder, const auto& is_own) {
    return std::ranges::all_of(paths_in(folder), is_own);
  };
  return is_there(path / kWorkFolder) &&
         all_in(path,
                [&](const fs::path& made) {
                  return std::ranges::find(kFirst, made.filename().string()) != kFirst.end();
                }) &&
         all_in(path / kWorkFolder,
                [](const fs::path& worker) { return worker.stem().has_extension(); });
}

// Throws Error for a folder with foreign contents, so that an experiment never overwrites them.
void require_own(const fs::path& path) {
  std::error_code ignored;
  if (!is_there(path)) return;
  if (fs::is_directory(path, ignored) && fs::is_empty(path, ignored)) return;
  // The other process may write its design meanwhile, so that is looked for at last.
  if (is_being_made(path) || is_there(path / kDesignFile)) return;
  throw_error(
      "{}: is not the folder of an experiment; accepted: one with a {}, or a folder that does not "
      "exist yet",
      path.string(), kDesignFile);
}

// All texts that set the option, anywhere in the design.
std::vector<std::string*> texts_of(Design& design, std::string_view option, std::string& base) {
  std::vector<std::string*> texts{&base};
  for (Axis& axis : design.axes) {
    if (axis.option != option) continue;
    for (std::string& value : axis.values) texts.push_back(&value);
  }
  for (Assigned& assigned : design.baseline) {
    if (assigned.name == option) texts.push_back(&assigned.value);
  }
  if (design.tuning && design.tuning->option == option) {
    for (std::string& value : design.tuning->values) texts.push_back(&value);
  }
  return texts;
}

}  // namespace

ExperimentFolder::ExperimentFolder(fs::path path) : path_(absolute_path(path)) {
  if (!path_.has_filename()) path_ = path_.parent_path();
  require_own(path_);
  make_folder(path_);
  worker_ = std::make_unique<Worker>(path_);
  make_folder(path_ / kTraces);
  make_folder(runs());
}

Design ExperimentFolder::adopt(const Design& given) const {
  Design design = given;
  for (const RunOption& option : run_options()) {
    if (option.map_path == nullptr) continue;
    std::string base = option.text(design.base).value_or("");
    const std::vector<std::string*> texts = texts_of(design, option.name, base);
    // A file that is named in several places is adopted once.
    std::set<std::string> named;
    for (const std::string* const text : texts) named.insert(*text);
    const std::vector<std::string> different(named.begin(), named.end());
    const std::vector<std::string> labels = labels_of(option.name, different);
    std::map<std::string, std::string> after;
    for (std::size_t i = 0; i < different.size(); ++i) {
      after[different[i]] = option.name == kTraceOption
                                ? adopt_trace(different[i], labels[i])
                                : option.map_path(different[i], [](const fs::path& file) {
                                    return absolute_path(file);
                                  });
    }
    for (std::string* text : texts) *text = after.at(*text);
    if (!base.empty()) option.set(design.base, base);
  }
  return design;
}

std::string ExperimentFolder::adopt_trace(const std::string& trace,
                                          const std::string& label) const {
  const fs::path folder = path_ / kTraces;
  // The files of zones after the first have numbers.
  int files = 0;
  return map_trace(trace, [&](const fs::path& file) {
    const std::string number = files++ == 0 ? "" : fmt::format("-{}", files);
    if (absolute_path(file).parent_path() == folder) return absolute_path(file);
    fs::path copy = folder / (slug(label) + number + file.extension().string());
    std::string content;
    try {
      content = read_file(file);
    } catch (const Error& error) {
      throw_error("--trace: {}", error.what());
    }
    if (!is_there(copy)) {
      worker_->write(copy, content);
    } else if (read_file(copy) != content) {
      throw_error(
          "--trace: {} differs from the trace of that name in the experiment, {}; accepted: that "
          "trace, or one with another name",
          file.string(), copy.string());
    }
    return copy;
  });
}

void ExperimentFolder::write_design(const Design& design) const {
  write(kDesignFile, to_toml(design, path_));
}

void ExperimentFolder::write_plan(const std::vector<std::string>& names) const {
  write(kPlanFile, fmt::format("{}\n", fmt::join(names, "\n")));
}

fs::path ExperimentFolder::runs() const {
  return path_ / kRunsFolder;
}

RunFiles ExperimentFolder::files_of(const PlannedRun& run, bool tuning) const {
  return rubato::files_of(path_, run.name, tuning);
}

std::string ExperimentFolder::config_text(const PlannedRun& run) const {
  RunConfiguration configuration = with_paths_from(path_ / kRunsFolder, run.configuration);
  // The path is relative, so that the folder can be moved.
  configuration.trace = map_trace(configuration.trace.text(), [&](const fs::path& file) {
    fs::path inside = file.lexically_relative(path_ / kRunsFolder);
    return inside.parent_path() == fs::path("..") / kTraces ? inside : file;
  });
  return to_toml(configuration);
}

void ExperimentFolder::prepare(const PlannedRun& run, const RunFiles& files) const {
  require_same(run, files);
  if (is_there(files.config)) return;
  make_folder(files.config.parent_path());
  worker_->write(files.config, config_text(run));
}

void ExperimentFolder::require_same(const PlannedRun& run, const RunFiles& files) const {
  if (!is_there(files.config)) return;
  const Extensions& own = run.configuration.extensions;
  const RunConfiguration before =
      parse_configuration(read_file(files.config), files.config.string(), {}, own);
  const RunConfiguration now =
      parse_configuration(config_text(run), files.config.string(), {}, own);
  std::vector<std::string> differences;
  for (const RunOption& option : run_options()) {
    if (option.affects != Affects::bits) continue;
    if (bound_text(option, before) == bound_text(option, now)) continue;
    differences.push_back(change_in_words(option, before, now));
  }
  if (differences.empty()) return;
  throw_error(
      "{}: the run {} exists with other options: {}\naccepted: the same options with as many "
      "values as you like, or another --out",
      path_.string(), run.name, fmt::join(differences, ", "));
}

fs::path ExperimentFolder::prepare_fork(PlannedRun run, const RunFiles& files, const fs::path& of,
                                        std::int64_t steps) const {
  run.configuration.from = fmt::format("{}@{}", of.string(), steps);
  fs::path file = files.config;
  file.replace_extension(".fork.toml");
  worker_->write(file, config_text(run));
  return file;
}

fs::path ExperimentFolder::shared_steps_of(const PlannedRun& run, std::int64_t steps) const {
  return path_ / kShared / fmt::to_string(steps) / run.name;
}

void ExperimentFolder::write(std::string_view name, std::string_view content) const {
  worker_->write(path_ / name, content);
}

}  // namespace rubato
