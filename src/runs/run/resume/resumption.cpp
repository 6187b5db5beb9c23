#include "resumption.hpp"

#include <sstream>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rubato/runs/run_configuration.hpp>

#include "base/core/system/file.hpp"
#include "recorded_data.hpp"
#include "runs/config/options/run_option.hpp"
#include "runs/config/parts/plugin.hpp"
#include "runs/tensorboard/event_folder.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

void move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) {
    throw OutputError(fmt::format("{}: cannot write: {}", to.string(), error.message()));
  }
}

// Copies the plug-ins into the folder, and makes the configuration name the copies.
void write_plugins(const RunFolder& folder, RunConfiguration& run) {
  std::vector<Plugin> plugins = parse_plugins(run.plugin);
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    const std::string name = i == 0 ? "given-plugin.so" : fmt::format("given-plugin-{}.so", i + 1);
    folder.write(name, content_of(plugins[i]));
    plugins[i].file = folder.file(name);
  }
  run.plugin = to_text(plugins);
}

}  // namespace

std::string config_text(const RunConfiguration& run, const RunFolder& folder) {
  return to_toml(with_paths_from(folder.path(), run));
}

std::string write_origin(const RunFolder& folder, RunConfiguration run, const RunSteps& steps,
                         std::span<const WorkloadFile> files) {
  if (const Availability* const availability = std::get_if<Availability>(&steps)) {
    std::ostringstream text;
    availability->write_csv(text);
    folder.write("availability.csv", text.str());
    run.trace = folder.file("availability.csv").string();
  } else if (!run.trace->is_built_in()) {
    folder.write("trace.csv", std::get<Trace>(steps).to_csv());
    run.trace = folder.file("trace.csv").string();
    // The file holds the steps that the availability yielded.
    run.availability.clear();
  }
  for (const WorkloadFile& file : files) {
    const std::string name = fmt::format("given-{}{}", file.option, file.extension);
    folder.write(name, file.bytes);
    const RunOption& option = run_option(file.option);
    option.set(run, option.map_path(*option.text(run),
                                    [&](const fs::path&) { return folder.file(name); }));
  }
  write_plugins(folder, run);
  std::string config = config_text(run, folder);
  folder.write("config.toml", config);
  return config;
}

KeepNewer::KeepNewer(const RunFolder& run, const CheckpointFolder& checkpoints, Options options)
    : run_(run.path()),
      steps_(CheckpointFolder::steps_of(options.from).value_or(0)),
      options_(std::move(options)) {
  for (fs::path& file : checkpoints.files()) {
    if (CheckpointFolder::steps_of(file) > steps_) newer_.push_back(std::move(file));
  }
}

// Whether the run had ended after more steps than those of the checkpoint that it continues from.
bool KeepNewer::is_finished_later() const {
  std::error_code ignored;
  if (!fs::exists(run_ / "summary.json", ignored)) return false;
  const auto summary =
      nlohmann::json::parse(read_file(run_ / "summary.json"), nullptr, /*allow_exceptions=*/false);
  const auto steps = summary.is_object() ? summary.find("steps") : summary.end();
  return steps == summary.end() || !steps->is_number_integer() || *steps > steps_;
}

// The order of these calls ensures that the run always has all of its lines and its newest
// remaining checkpoint, whenever this is interrupted.
void KeepNewer::visit_state(StateVisitor& state, const Training& training) {
  static_cast<void>(training);
  if (!state.loading()) return;
  if (!is_finished_later() && !(options_.named && !newer_.empty())) return;
  const RunFolder aside(unused_path(run_ / fmt::format("newer-than-step-{}", steps_)));
  RunConfiguration before = read_configuration(run_ / "config.toml", {}, *options_.now);
  before.data = options_.now->data;
  // The run was trained with this trace, and may continue with another.
  const RunSteps steps = load_run_steps(before);
  write_origin(aside, std::move(before), steps, options_.files);
  aside.write("metrics.jsonl", read_file(run_ / "metrics.jsonl"));
  if (std::error_code ignored; fs::exists(run_ / kDataRecordFile, ignored)) {
    aside.write(kDataRecordFile, read_file(run_ / kDataRecordFile));
  }
  for (const fs::path& file : event_files(run_)) {
    aside.write(file.filename().string(), read_file(file));
  }
  std::error_code ignored;
  for (const char* name : {"best.pt", "best.safetensors", "model.pt", "weights.pt",
                           "weights.safetensors", "summary.json"}) {
    if (fs::exists(run_ / name, ignored)) move(run_ / name, aside.file(name));
  }
  if (!newer_.empty()) {
    fs::create_directory(aside.file("checkpoints"), ignored);
    for (const fs::path& file : newer_) move(file, aside.file("checkpoints") / file.filename());
    flush_to_disk(aside.file("checkpoints"));
    flush_to_disk(newer_.front().parent_path());
  }
  flush_to_disk(aside.path());
  flush_to_disk(run_);
  kept_in_ = aside.path();
}

}  // namespace rubato
