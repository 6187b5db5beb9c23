#include "run/run_record.hpp"

#include <string_view>

#include <fmt/format.h>

#include <rubato/config/configuration_file.hpp>

namespace rubato {

namespace {

constexpr std::string_view kConfig = "config";
constexpr std::string_view kSeconds = "wall_seconds";
constexpr std::string_view kKernelsInUse = "in_use";

}  // namespace

void RunRecord::save(State& state) const {
  state.put_text(kConfig, config_);
  state.put(kSeconds, wall_seconds());
}

void RunRecord::load(const Training& training, const State& state) {
  static_cast<void>(training);
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

RunConfiguration configuration_in(const State& checkpoint) {
  return parse_configuration(observer_state(checkpoint, "run").text(kConfig),
                             "the checkpoint's configuration");
}

}  // namespace rubato
