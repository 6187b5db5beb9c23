#pragma once

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Adds to the module: TrainedOn (trained_on.hpp), which Python only keeps; and
///
///     predict(TrainedOn, bytes of a TorchScript module, input tensors) -> list of output tensors
///     evaluate(TrainedOn, bytes of it, input tensors, target tensors) -> {metric: number}
///
/// Inputs are as those of training were given, and are normalised by these. Throw Error.
void define_trained(pybind11::module_& module);

}  // namespace rubato::python
