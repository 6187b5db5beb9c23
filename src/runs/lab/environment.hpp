#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rubato::lab {

/// What a measurement depends on and a number should never be told without: name and value of the
/// processor, its caches, hardware threads, kernel, compiler, BLAS; "unknown" where the machine
/// does not say.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> environment();

}  // namespace rubato::lab
