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

/// To be called first in main(), before there are threads: removes the variables by which users
/// bind the threads of OpenMP to CPUs. Training has no such threads, but the OpenMP of libtorch,
/// when it is loaded, binds the thread that loads it, and with it all that are started later.
/// Programs that this one starts, or becomes, load it.
void ignore_openmp_binding();

/// Tells the user which variable has bound the process to `allowed` of the `online` CPUs; empty
/// where these are all, or none of the variables is set.
[[nodiscard]] std::optional<std::string> openmp_binding(int allowed, int online,
                                                        const ReadVariable& read);
/// The same for this process.
[[nodiscard]] std::optional<std::string> openmp_binding();

}  // namespace rubato
