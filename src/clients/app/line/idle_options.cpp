#include "idle_options.hpp"

#include <fmt/format.h>

#include <rubato/base/error.hpp>

namespace rubato::app {

void require_none_idle(const CommandLine& line, std::span<const IdleOption> options) {
  for (const auto& [option, idle, why, accepted] : options) {
    if (!idle || !line.given().contains(option)) continue;
    throw Error(fmt::format("--{}: {}; accepted: {}", option, why, accepted));
  }
}

}  // namespace rubato::app
