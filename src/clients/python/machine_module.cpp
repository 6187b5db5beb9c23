// rubato._machine: what has to be known before libtorch is loaded. Loads nothing.

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/base/error.hpp>

#include "base/machine/kernel_variables.hpp"

namespace {

namespace py = pybind11;

// Environment variables that have to be set and are not, for kernels "native" or "portable", where
// OpenBLAS by itself takes those of `core` and calls itself `config`; an empty core is no OpenBLAS.
rubato::Variables kernel_variables(const std::string& kernels, const std::string& core,
                                   const std::string& config) {
  std::optional<rubato::OpenBlas> openblas;
  if (!core.empty()) openblas = rubato::OpenBlas{.core = core, .config = config};
  try {
    return rubato::variables_to_set(rubato::parse_choice("kernels", kernels, rubato::kKernels),
                                    rubato::cpu_instruction_set(), openblas,
                                    [](const std::string& name) {
                                      const char* const value = std::getenv(name.c_str());
                                      return value == nullptr ? std::string() : std::string(value);
                                    });
  } catch (const rubato::Error& error) {
    throw py::value_error(error.what());
  }
}

}  // namespace

PYBIND11_MODULE(_machine, module) {
  module.def("kernel_variables", &kernel_variables);
}
