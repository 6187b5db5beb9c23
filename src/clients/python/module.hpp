#pragma once

#include <exception>
#include <optional>

#include <pybind11/pybind11.h>

#include <rubato/runs/run_configuration.hpp>

#include "own_parts.hpp"

namespace rubato::python {

/// Defines rubato's exceptions as members of `module`, and translates C++ exceptions into them.
void define_errors(pybind11::module_& module);

/// Called in a handler: rethrows libtorch's exceptions as an Error without their stack, failures to
/// get memory as a MemoryError, and everything else unchanged.
[[noreturn]] void rethrow_for_users();

/// Adds to `module`: options(), a list of all options of a run, and families(), the names that they
/// accept.
void define_options(pybind11::module_& module);

/// Adds the class AdaScaleEstimator to `module`.
void define_estimator(pybind11::module_& module);

/// Adds to `module` the classes Trace and Availability, and the functions that read and make them.
void define_traces(pybind11::module_& module);

/// The steps in an object of one of these classes; empty for None. Throws pybind11::cast_error for
/// other objects.
[[nodiscard]] std::optional<RunSteps> steps_in(const pybind11::object& object);

/// The same steps with another end; unchanged if `end` is empty.
[[nodiscard]] RunSteps with_end(RunSteps steps, std::optional<TraceEnd> end);

/// Adds to `module` plan() and simulate(), which say what training would do without training.
void define_planning(pybind11::module_& module);

/// The data that a model was trained on, kept for later questions about other samples. Keeps the
/// tensors that Python passed.
struct TrainedOn {
  RunConfiguration run{};
  OwnParts parts{};
  bool has_real_targets = false;
};

/// Adds to the module: TrainedOn, which Python only keeps; and
///
///     predict(TrainedOn, bytes of a TorchScript module, input tensors) -> list of output tensors
///     evaluate(TrainedOn, bytes of it, input tensors, target tensors) -> {metric: number}
///
/// Inputs have the form of those of training, and are normalised by those. Both throw Error.
void define_trained(pybind11::module_& module);

/// Adds to `module` what notebooks show, as HTML (runs/page/part.hpp), and the records of a run:
///
///     html_of_result(TrainedOn, steps, epochs, faults, text of summary.json or "") -> HTML
///     html_of_folder(folder of a run or an experiment) -> HTML
///     html_of_steps(Trace or Availability) -> HTML
///     recorded_run(folder) -> {"steps", "epochs", "minibatches", "faults", "monitored":
///                              {column: array}, "summary": text of summary.json or ""}
///
/// Columns are as in train(). All throw Error.
void define_showing(pybind11::module_& module);

}  // namespace rubato::python
