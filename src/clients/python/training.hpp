#pragma once

#include <pybind11/pybind11.h>

#include "request.hpp"

namespace rubato::python {

/// Trains like `rubato train`, and prints nothing.
///
/// `parts` is None, or a dictionary of objects that the request cannot contain, each None or:
///
///     model       bytes of a TorchScript module
///     transient   list of names of its buffers that are not in files of weights
///     loss        bytes of a TorchScript module
///     train       (list of input tensors, list of target tensors)
///     test        the same
///     steps       a Trace or an Availability of this module
///
/// `callbacks` contains objects that are called on the calling thread, each None or:
///
///     on_step, on_epoch   called with a dictionary; returns None, False, which ends training as
///                         Run::stop_for_now() does, or (the rate to set or None,
///                         {metric: number})
///     progress            (write(text), the descriptor of its terminal or -1, whether it redraws)
///
/// Returns a dictionary:
///
///     end              the name of SessionOutcome::end in kRunEnds
///     reason           SessionOutcome::reason, or why the run was stopped by another host
///     failure          the exception of a callback or a signal's handler, else None
///     warnings         list of texts
///     summary          the text of summary.json; empty if the training was paused
///     folder           folder of the run; empty if it has none
///     checkpoint       checkpoint that was written when it was paused; else empty
///     to_go_on         the call that resumes the run, as users write it
///     model_name       as the configuration has it: "mlp:hidden=64", or "own"
///     has_real_targets whether targets are real numbers, not class indices
///     steps, epochs, minibatches, faults, monitored   {column: array}
///     is_whole         whether there are weights: False if it failed while it was ending
///     weights          {name: tensor} by name: "" for the model's, and those beside them
///     model            bytes of TorchScript, if the model is TorchScript; else None
///     best_epoch       counted from 0; None without weights "best"
///     trained_on       a TrainedOn (module.hpp)
///     unfinished       an Unfinished if it was interrupted and has no folder; else None
///
/// The second signal whose handler raises, such as that of Ctrl-C, ends the call at once; the
/// training then ends by itself after its step, without a checkpoint, and no other one begins
/// before.
///
/// Throws Error, also if another training is under way in the process.
[[nodiscard]] pybind11::dict train(const Request& request, const pybind11::object& parts,
                                   const pybind11::dict& callbacks);

/// The inputs of the first minibatch of the training data of such a training, in the shape and of
/// the type in which it gives them to the model: a list of tensors. `float64` says that the model's
/// parameters are float64. The model in `parts` is ignored. Throws Error.
[[nodiscard]] pybind11::list list_of_first_inputs(const Request& request,
                                                  const pybind11::object& parts, bool float64);

}  // namespace rubato::python
