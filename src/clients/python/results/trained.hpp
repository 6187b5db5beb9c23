#pragma once

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Adds to the module: TrainedOn (trained_on.hpp), which Python only keeps; and
///
///     predict(TrainedOn, bytes of a TorchScript module, input tensors) -> list of output tensors
///     evaluate(TrainedOn, bytes of it, input tensors, target tensors) -> {metric: number}
///
/// Inputs have the form of those of training, and are normalised by those. Both throw Error.
void define_trained(pybind11::module_& module);

}  // namespace rubato::python
