#include "app/idle_options.hpp"

#include <fmt/format.h>

#include <rubato/core/error.hpp>
#include <rubato/core/number.hpp>

namespace rubato::app {

void require_none_idle(const CommandLine& line, std::span<const IdleOption> options) {
  for (const auto& [option, idle, why, accepted] : options) {
    if (!idle || !line.given().contains(option)) continue;
    throw Error(fmt::format("--{}: {}; accepted: {}", option, why, accepted));
  }
}

void require_trace_end(const CommandLine& line, const RunConfiguration& run) {
  const IdleOption end{.option = "on-trace-end",
                       .idle = is_number(run.trace),
                       .why = "a constant trace has no end",
                       .accepted = "with a file or elastic"};
  require_none_idle(line, {&end, 1});
}

}  // namespace rubato::app
