#include "run/run_record.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/config/configuration_file.hpp>
#include <rubato/core/error.hpp>

#include "state/sha256.hpp"

namespace rubato {

namespace {

constexpr std::string_view kConfig = "config";
constexpr std::string_view kSeconds = "wall_seconds";
constexpr std::string_view kKernelsInUse = "in_use";

std::string key_of(const std::string& option) {
  return fmt::format("sha256.{}", option);
}

}  // namespace

RunRecord::RunRecord(std::string config, std::span<const WorkloadFile> files)
    : config_(std::move(config)) {
  for (const WorkloadFile& file : files) {
    files_.push_back({.option = file.option, .hex = Sha256::hex_of(file.bytes)});
  }
}

void RunRecord::save(State& state) const {
  state.put_text(kConfig, config_);
  for (const FileHash& file : files_) state.put_text(key_of(file.option), file.hex);
  state.put(kSeconds, wall_seconds());
}

void RunRecord::load(const Training& training, const State& state) {
  static_cast<void>(training);
  for (const FileHash& file : files_) {
    const std::string key = key_of(file.option);
    if (!state.has_text(key) || state.text(key) == file.hex) continue;
    throw Error(
        fmt::format("--{}: the file is not the one that the run was trained with (SHA-256 {}, was "
                    "{}); accepted: given-{}.* of the run",
                    file.option, file.hex, state.text(key), file.option));
  }
  seconds_before_ = state.value<double>(kSeconds);
}

void KernelRecord::save(State& state) const {
  state.put_text(kKernelsInUse, kernels_);
}

void KernelRecord::load(const Training& training, const State& state) {
  static_cast<void>(training);
  if (!state.has_text(kKernelsInUse)) return;
  const std::string& before = state.text(kKernelsInUse);
  if (before == kernels_) return;
  difference_ = fmt::format(
      "the run was computed with {}\nand goes on with {}: its bits may differ from those of a run "
      "that was not interrupted (--kernels portable keeps them)",
      before, kernels_);
}

RunConfiguration configuration_in(const State& checkpoint, const Extensions& extensions) {
  return parse_configuration(observer_state(checkpoint, "run").text(kConfig),
                             "the checkpoint's configuration", {}, extensions);
}

}  // namespace rubato
