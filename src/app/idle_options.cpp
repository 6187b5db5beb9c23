#include "app/idle_options.hpp"

#include <fmt/format.h>

#include <rubato/core/error.hpp>

#include "app/trace_option.hpp"

namespace rubato::app {

void require_none_idle(const CommandLine& line, std::span<const IdleOption> options) {
  for (const auto& [option, idle, why, accepted] : options) {
    if (!idle || !line.given().contains(option)) continue;
    throw Error(fmt::format("--{}: {}; accepted: {}", option, why, accepted));
  }
}

std::optional<std::string> idle_cores(const Trace& trace, std::int64_t cores) {
  if (!cores_of(trace, cores).all_said) return std::nullopt;
  return fmt::format("--cores {} does nothing: {} says how many there are in every step", cores,
                     trace.source());
}

}  // namespace rubato::app
