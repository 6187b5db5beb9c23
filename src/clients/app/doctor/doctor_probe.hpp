#pragma once

#include <string>

namespace rubato::app {

/// What `rubato doctor` asks of the program that trains: probe_this_process() and what libtorch
/// knows, as JSON.
[[nodiscard]] std::string doctor_probe();

}  // namespace rubato::app
