#pragma once

#include <span>
#include <string>

namespace rubato::app {

/// `rubato trace fit`.
int fit_trace(std::span<const std::string> arguments);

}  // namespace rubato::app
