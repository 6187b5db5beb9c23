#include "run_record.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rubato/base/error.hpp>
#include <rubato/runs/run_configuration.hpp>

#include "base/state/sha256.hpp"

namespace rubato {

namespace {

constexpr std::string_view kConfig = "config";
constexpr std::string_view kSeconds = "wall_seconds";
constexpr std::string_view kKernelsInUse = "in_use";
constexpr std::string_view kLibtorch = "libtorch";

std::string key_of(const std::string& option) {
  return fmt::format("sha256.{}", option);
}

std::string said_of_difference(std::string_view before, std::string_view now,
                               std::string_view advice) {
  return fmt::format(
      "the run was computed with {}\nand continues with {}: its bits may differ from those of a "
      "run "
      "that was not interrupted{}",
      before, now, advice);
}

}  // namespace

RunRecord::RunRecord(std::string config, std::span<const WorkloadFile> files)
    : config_(std::move(config)) {
  for (const WorkloadFile& file : files) {
    files_.push_back({.option = file.option, .hex = Sha256::hex_of(file.bytes)});
  }
}

void RunRecord::visit_state(StateVisitor& state, const Training& training) {
  static_cast<void>(training);
  static_cast<void>(state.bound_if_there(kConfig, config_));
  for (const FileHash& file : files_) {
    const std::string before = state.bound_if_there(key_of(file.option), file.hex);
    if (before == file.hex) continue;
    throw Error(
        fmt::format("--{}: the file is not the one that the run was trained with (SHA-256 {}, was "
                    "{}); accepted: given-{}.* of the run",
                    file.option, file.hex, before, file.option));
  }
  double seconds = wall_seconds();
  state.value(kSeconds, seconds);
  if (state.loading()) seconds_before_ = seconds;
}

void KernelRecord::visit_state(StateVisitor& state, const Training& training) {
  static_cast<void>(training);
  const std::string kernels = state.bound_if_there(kKernelsInUse, kernels_);
  const std::string libtorch = state.bound_if_there(kLibtorch, libtorch_);
  if (kernels != kernels_) {
    difference_ = said_of_difference(kernels, kernels_, " (--kernels portable keeps them)");
  } else if (libtorch != libtorch_) {
    difference_ = said_of_difference("libtorch " + libtorch, "libtorch " + libtorch_, "");
  }
}

RunConfiguration configuration_in(const State& checkpoint, const Extensions& extensions) {
  return parse_configuration(observer_state(checkpoint, "run").text(kConfig),
                             "the checkpoint's configuration", {}, extensions);
}

}  // namespace rubato
