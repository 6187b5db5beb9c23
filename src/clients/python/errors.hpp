#pragma once

#include <exception>

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Makes rubato's exceptions members of `module`, and what C++ throws into them.
void define_errors(pybind11::module_& module);

/// In a handler: throws libtorch's exceptions as an Error without their stack, and one that says
/// that memory could not be had as a MemoryError; all else as it is.
[[noreturn]] void rethrow_for_users();

}  // namespace rubato::python
