#pragma once

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Adds to `module` plan() and simulate(), which say what training would do without training.
void define_planning(pybind11::module_& module);

}  // namespace rubato::python
