#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rubato::lab {

/// The environment that a measurement depends on, without which a number should never be published:
/// name and value of the processor, its caches, hardware threads, kernel, compiler and BLAS;
/// "unknown" if the machine does not say.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> environment();

}  // namespace rubato::lab
