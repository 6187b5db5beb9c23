#pragma once

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Adds to `module`: options(), a list of all options of a run, and families(), the names that they
/// accept.
void define_options(pybind11::module_& module);

}  // namespace rubato::python
