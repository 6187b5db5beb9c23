#pragma once

#include <rubato/runs/run_configuration.hpp>

namespace rubato {

/// The engine of a run, never Engine::automatic. Throws Error if no engine can do all that the run
/// asks for, or not the one that it names.
[[nodiscard]] Engine engine_of(const RunConfiguration& configuration);

}  // namespace rubato
