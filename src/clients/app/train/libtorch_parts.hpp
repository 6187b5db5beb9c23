#pragma once

#include <string>

namespace rubato::app {

/// The answer of rubato-train to `rubato doctor`: probe_this_process() and the versions and kernels
/// of libtorch, as JSON.
[[nodiscard]] std::string doctor_probe();

/// Keeps libtorch from starting threads when it loads models and data: a process that forks runs
/// may have none.
void load_without_threads();

}  // namespace rubato::app
