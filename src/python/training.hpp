#pragma once

#include <string>
#include <vector>

#include <pybind11/pybind11.h>

namespace rubato::python {

/// Trains as `rubato train` would with these arguments, and nothing printed.
///
/// `parts` is None, or a dictionary of what is not among them, each None or:
///
///     model    bytes of a TorchScript module
///     loss     the name of a loss, or bytes of a TorchScript module
///     train    (list of input tensors, list of target tensors), and
///     test     the same
///
/// `on_step` and `on_epoch` are None or called with a dictionary, on the calling thread; False ends
/// training. Returns a dictionary:
///
///     end              "completed", "diverged" or "interrupted"
///     reason           of a training that diverged; else empty
///     missed_target    what target_accuracy has to say; else empty
///     failure          what a callback or a signal's handler raised, else None
///     warnings         list of texts
///     summary          the text of summary.json; empty where it was interrupted
///     folder           of the run; empty where there is none
///     checkpoint       that was written when it was interrupted; else empty
///     steps, epochs, minibatches   {column: array}
///     weights, best    {name: tensor}; best is None where it is not kept
///     best_epoch       counted from 0
///
/// Throws Error, also where another training is under way in the process.
[[nodiscard]] pybind11::dict train(const std::vector<std::string>& arguments,
                                   const pybind11::object& parts, const pybind11::object& on_step,
                                   const pybind11::object& on_epoch);

/// Asks the training that is under way to stop, waits for it, and lets no other begin: before the
/// interpreter goes.
void end_training();

}  // namespace rubato::python
