#pragma once

#include <string>

namespace rubato::app {

/// The answer of rubato-train to `rubato doctor`: probe_this_process() and the versions and kernels
/// of libtorch, as JSON.
[[nodiscard]] std::string doctor_probe();

}  // namespace rubato::app
