#include "app/idle_options.hpp"

#include <fmt/format.h>

#include <rubato/core/error.hpp>

#include "config/run_option.hpp"
#include "config/trace_source.hpp"

namespace rubato::app {

void require_none_idle(const CommandLine& line, std::span<const IdleOption> options) {
  for (const auto& [option, idle, why, accepted] : options) {
    if (!idle || !line.given().contains(option)) continue;
    throw Error(fmt::format("--{}: {}; accepted: {}", option, why, accepted));
  }
}

void require_none_idle(const CommandLine& line, const RunConfiguration& run) {
  for (const RunOption& option : run_options()) {
    if (!line.given().contains(option.name)) continue;
    const std::string why = why_idle(option, run);
    if (!why.empty()) throw Error(fmt::format("--{}: {}", option.name, why));
  }
}

std::optional<std::string> idle_cores(const RunSteps& steps, const RunConfiguration& run) {
  if (!cores_of(steps, run).all_said) return std::nullopt;
  return fmt::format("--cores {} does nothing: {} says how many there are in every step", run.cores,
                     source_of(steps));
}

}  // namespace rubato::app
