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
/// Reads the value of an environment variable; empty if it is not set.
using ReadVariable = std::function<std::string(const std::string& name)>;

/// The variables to change before a process can compute with `kernels` on a CPU with `cpu`;
/// `openblas` is the process's present one. Throws Error if the CPU cannot compute with them.
[[nodiscard]] Variables variables_to_set(Kernels kernels, InstructionSet cpu,
                                         const std::optional<OpenBlas>& openblas,
                                         const ReadVariable& read);

/// Removes the variables by which users bind OpenMP's threads to CPUs; to be called first in
/// main(), before there are threads. Training has no such threads, but when libtorch is loaded, its
/// OpenMP binds the thread that loads it, and so all threads that this one starts later. The
/// programs that this one starts or becomes load it.
void ignore_openmp_binding();

/// A message about the variable that has bound the process to `allowed` of the `online` CPUs; empty
/// if it may use them all, or none of the variables is set.
[[nodiscard]] std::optional<std::string> openmp_binding(int allowed, int online,
                                                        const ReadVariable& read);
/// Like the function above, for this process.
[[nodiscard]] std::optional<std::string> openmp_binding();

}  // namespace rubato
