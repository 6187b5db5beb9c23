// rubato._machine has to be usable before libtorch is loaded, and loads nothing itself.

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <rubato/base/error.hpp>

#include "base/machine/kernels.hpp"

namespace {

namespace py = pybind11;

// Environment variables that have to be set and are not, for kernels "native" or "portable". `core`
// and `config` are those that OpenBLAS chooses by itself; an empty core means that there is no
// OpenBLAS.
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
