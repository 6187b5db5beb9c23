#pragma once

#include <exception>

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Defines rubato's exceptions as members of `module`, and translates C++ exceptions into them.
void define_errors(pybind11::module_& module);

/// Called in a handler: rethrows libtorch's exceptions as an Error without their stack, failures to
/// get memory as a MemoryError, and everything else unchanged.
[[noreturn]] void rethrow_for_users();

}  // namespace rubato::python
