#pragma once

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Adds the class AdaScaleEstimator to `module`.
void define_estimator(pybind11::module_& module);

}  // namespace rubato::python
