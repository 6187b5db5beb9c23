#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rubato/base/machine.hpp>

#include "instruction_set.hpp"
#include "openblas.hpp"

namespace rubato {

/// Names and values of environment variables.
using Variables = std::vector<std::pair<std::string, std::string>>;
/// The value of an environment variable; empty where it is not set.
using ReadVariable = std::function<std::string(const std::string& name)>;

/// The variables that have to be set, and are not, before a process computes with `kernels` on a
/// CPU with `cpu`; `openblas` is what the process has so far. Throws Error where the CPU cannot.
[[nodiscard]] Variables variables_to_set(Kernels kernels, InstructionSet cpu,
                                         const std::optional<OpenBlas>& openblas,
                                         const ReadVariable& read);

}  // namespace rubato
