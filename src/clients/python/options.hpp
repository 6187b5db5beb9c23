#pragma once

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Adds to `module`: options(), a list of all options of a run, and families(), what they take by
/// name.
void define_options(pybind11::module_& module);

}  // namespace rubato::python
