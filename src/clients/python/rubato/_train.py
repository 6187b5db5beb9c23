"""rubato.train()."""

import contextlib
import io
import numbers
import os
import sys
import tempfile
import warnings
import weakref
from pathlib import Path

import torch

from . import _data, _losses, _modules, _options, _rubato, _trace
from ._callbacks import Callbacks, NamedRule, rule_for_cpp
from ._result import TrainResult
from ._show import is_notebook


class Diverged(_rubato.Error):
    """The loss or the gradient became infinite or NaN; `result` is the TrainResult until then."""

    result = None


class TargetMissed(_rubato.Error):
    """The test accuracy is below target_accuracy; `result` is the TrainResult of the training."""

    result = None


# Exceptions by the end of a training.
_RAISED = {"diverged": Diverged, "target_missed": TargetMissed}


class _Files:
    """The weights that a training which goes on reads again; they are removed with the last result that needs them."""

    def __init__(self, temporary):
        weakref.finalize(self, temporary.cleanup)


class _Parts:
    """The model, the data, the loss and the steps of a training, as C++ takes them; named ones are set in its
    `request`."""

    def __init__(self, request, model, data, validation, loss, steps):
        self.request = request
        self.script = self._loss = None
        self.transient = _modules.transient_buffers(model)
        self._train = self._test = None
        self._steps = steps
        self._take_data(data, validation)
        if isinstance(loss, str):
            # What the targets mean depends on it, which is checked with the model's first inputs.
            self.request.set("loss", loss)
        self._take_model(model)
        self._take_loss(loss)

    def for_cpp(self):
        return {"model": self.script, "transient": self.transient, "loss": self._loss, "train": self._train, "test": self._test, "steps": self._steps}

    def _take_data(self, data, validation):
        if isinstance(validation, (str, numbers.Real)):
            self.request.set("validation", _options.text_of("validation", validation))
            validation = None
        if data is None or isinstance(data, (str, os.PathLike)):
            if validation is not None:
                raise _rubato.Error("validation: data with a name have a test set or none; accepted: the share of the "
                                    "training set to hold out, or data of your own")
            if data is not None:
                self.request.set("data", os.fspath(data))
            return
        self._train = _data.tensors_of(data, "data")
        if validation is not None:
            self._test = _data.tensors_of(validation, "validation")
        self.request.set("data", "own")

    def _take_loss(self, loss):
        if loss is not None and not isinstance(loss, str):
            self._loss = _losses.bytes_of_loss(loss, self._first_outputs, 1 if self._train is None else len(self._train[1]))

    def _take_model(self, model):
        if model is None or isinstance(model, str):
            if model is not None:
                self.request.set("model", model)
            return
        self.request.set("model", "own")
        self.script = _modules.bytes_of_model(model, self._first_inputs)

    def _first_outputs(self):
        if self.script is None:
            raise _rubato.Error("loss: models with a name return one tensor; accepted: a loss of a tensor and the targets")
        parameters = torch.jit.load(io.BytesIO(self.script)).parameters()
        kind = next((parameter.dtype for parameter in parameters), torch.float32)
        return _losses.outputs_of(self.script, self._first_inputs(kind))

    def _first_inputs(self, parameter_type):
        """The inputs of training, as a model with parameters of that type gets them."""
        return _rubato.first_inputs(self.request, self.for_cpp(), parameter_type == torch.float64)


def _warn(texts):
    for text in texts:
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _with_result(error, result):
    """The exception with the result until then; one that has a result already keeps that."""
    if result is not None and getattr(error, "result", None) is None:
        try:
            error.result = result
        except AttributeError:
            # The exception has no place for attributes.
            pass
    return error


def _finish(found, parts):
    _warn(found["warnings"])
    result = TrainResult(found, parts.script, parts.transient) if found["is_whole"] else None
    if found["failure"] is not None:
        if found["checkpoint"]:
            _warn([f"the checkpoint is {found['checkpoint']}\nto go on: {found['to_go_on']}"])
        elif found["unfinished"] and is_notebook(sys.stderr):
            _warn([f"to go on: {found['to_go_on']}"])
        raise _with_result(found["failure"], result)
    if found["end"] == "paused":
        raise _rubato.Error(found["reason"] or "the interpreter is shutting down, and has ended the training")
    if found["end"] in _RAISED:
        raise _with_result(_RAISED[found["end"]](found["reason"]), result)
    if found["reason"]:
        _warn([found["reason"]])
    if result.steps.rows == 0:
        # A resumed run may be complete.
        _warn([f"nothing was left to train: {result.stopped or 'all epochs are complete'}"])
    return result


def _fork_point(run, step):
    """The text of the place where a fork begins; empty if it is none."""
    if run is None and step is None:
        return ""
    if run is None or step is None:
        raise TypeError("from_run and from_step belong together: the folder of a run, and how many steps it had taken")
    return f"{os.fspath(run)}@{step}"


def _request(paths, fork_point, options, trace, steps, rule, sampler, weights):
    """The request, as C++ takes it; weights that are not a file are written to the file `weights`."""
    given = options.get("weights")
    if isinstance(given, dict):
        torch.save(given, weights)
        options = options | {"weights": weights}
    elif isinstance(given, torch.nn.Module):
        raise TypeError(f"weights: it is of type {type(given).__name__}; accepted: its state_dict(), or a file")
    texts = _options.texts_of("train", options)
    if steps is not None:
        trace = "own"
        if options.get("on_trace_end") is None:
            texts.append(("on-trace-end", steps.end()))
    if trace is not None:
        texts.append(("trace", trace))
    if rule is not None:
        own = rule.text if isinstance(rule, NamedRule) else "own"
        texts.append(("rule", own if callable(rule) else _options.text_of("rule", rule)))
    sampler, sample_weights = _data.sampler_of(sampler)
    if sampler is not None:
        texts.append(("sampler", sampler))
    config, resume, out = paths
    resume, unfinished = resume._way_on() if isinstance(resume, TrainResult) else (resume, None)
    request = _rubato.Request(*(None if path is None else os.fspath(path) for path in (config, resume, out)), fork_point,
                              rule_for_cpp(rule), sample_weights, unfinished)
    for name, text in texts:
        request.set(name, text)
    return request


def _trace_or_batch_size(trace, batch_size):
    if batch_size is None:
        return trace
    if trace is not None:
        raise TypeError("batch_size: the trace says it for each step; accepted: one of them")
    if not isinstance(batch_size, numbers.Integral) or isinstance(batch_size, bool):
        raise TypeError(f"batch_size: it is of type {type(batch_size).__name__}; accepted: a whole number")
    return int(batch_size)


def train(model=None, data=None, *, trace=None, batch_size=None, validation=None, loss=None, rule=None, sampler=None, out=None,
          resume=None, config=None, from_run=None, from_step=None, hosts=None, on_step=None, on_epoch=None, progress=False, **options):
    """Trains a model while the number of accelerator cores, and with it the global batch size, changes underneath it.

    The weights are the same bits as those of `rubato train` with the same options, and for every number of threads
    and cores. Returns a TrainResult. Options that are None have the defaults of `rubato train`.

    model:
        the name of a built-in model (docs/models.md), a torch.jit.ScriptModule, or a torch.nn.Module, which is scripted
        or, failing that, copied and traced with the first minibatch. Your object stays as it is. A module that behaves
        differently in training and evaluation has to be one that torch.jit.script() compiles. [mnist-cnn]
    data:
        the name of a data set; (inputs, targets), each an array, a tensor or a list of several, whose first dimension
        counts samples; or a Dataset or DataLoader of torch.utils.data, which is read once, in the order of its data
        set. They are interpreted as by `tensors:FILE` (docs/data.md): uint8 pixels are normalised, integer targets are
        classes. Dense data of the type that the model takes are not copied: do not change them during training. Several
        inputs or targets per sample need a model of your own. [digits]
    trace:
        a list or an array of batch sizes or of (batch size, cores), a Trace or an Availability, or as --trace takes it:
        a file, a number, "elastic", or a generator such as "spot:most=64,seed=1". [elastic]
    batch_size:
        the batch size of every step, in place of a trace: 64 is the same as trace=64.
    validation:
        what the model is evaluated on after each epoch, in place of the test set: data of the same form, for data of
        your own, or the share of the training set to hold out, a number or text as for --validation.
    loss:
        the name of one ("cross-entropy", whose targets may also be a row of probabilities for each sample, "nll", "mse",
        "bce", "script:FILE"), or a function or module of outputs and targets that TorchScript compiles. It takes several
        outputs one by one, or as the Dict, Tuple or List that its first argument is annotated with, and returns the mean
        of a minibatch, or a sum and its weight, which are averaged over the step. [nll of models with a name, cross-entropy of your own, mse of real targets]
    rule:
        the name of a learning-rate rule (docs/options.md), or a function of a step's batch size and a dictionary of its
        statistics that returns the factor on the rate: `lambda batch, statistics: statistics["scale"]` is "linear". The
        dictionary has lr (that of the step, after the schedule), scale (the batch size relative to ref_batch), ref_batch,
        minibatch, minibatches and epoch_size (in samples), and with log_noise=True groups, for each parameter group the
        mean of the minibatches' squared gradient norms (minibatch_square) and the squared norm of their mean
        (mean_square); of steps of one minibatch they are of the step and the one before (from_pair). It is called once in
        a step. An object that remembers something has state(), a list of numbers, and load_state(). Instead of the factor
        it may return a dictionary with it and with numbers that replace the optimizer's in that step: momentum, beta1,
        beta2, epsilon (those that the optimizer has are statistics, too), weight_decay_factor, and mean_factor,
        variance_factor and forget_squares, which change what the optimizer remembers (docs/extending.md). [linear]
    sampler:
        the name of one ("shuffle", "in-order", "weighted:balanced", "weighted:column=NAME"), or a weight for each training
        sample, those that are held out included, as a tensor, an array or a list, or as a WeightedRandomSampler, of which
        the weights are taken. An epoch then draws as many samples as there are, with replacement (docs/data.md). [shuffle]
    out:
        the run folder, which must not exist; by default nothing is written.
    resume:
        a run folder or one of its checkpoints, to continue with the same model and data; or the `result` of the exception
        that interrupted a training, which needs no run folder.
    from_run, from_step:
        the folder of a run and one of its steps: the training begins with the state after that step, and with the options
        of the run; other options that are given hold from there on (docs/runs.md).
    config:
        a configuration file, as a run folder has it; arguments override it.
    hosts:
        a Hosts, to train one run together with other processes that come and go; it needs `out`, which is the run folder
        if this host writes it. A host that joined later has the steps since then in its result. Ctrl-C stops all hosts.
    on_step, on_epoch:
        called after each step or epoch with a dictionary of metrics, named as in TrainResult.steps and
        TrainResult.epochs; that of a step also has the list substeps. Returning False ends training, and a resume
        continues from there. Returning a dictionary adds its numbers to the metrics of the step or epoch, except lr,
        which replaces the option lr from the next step on, before schedule and rule.
    progress:
        True shows the progress of training on sys.stderr.

    Ctrl-C finishes the step, writes a checkpoint if there is a run folder, and raises KeyboardInterrupt; an exception
    in on_step or on_epoch does the same, and one in a rule ends training before the step. The exception has a
    TrainResult as its `result`, with the metrics and weights so far, from which resume= continues. A second Ctrl-C raises
    it at once, without either, and the step ends by itself. Other threads keep running; a second training at the same
    time is an error.

    Raises Error for mistakes in arguments, files or data, Diverged, TargetMissed, TrainingError for exceptions in the
    model, OutOfMemory, and OutputError if the run folder cannot be written.
    """
    callbacks = Callbacks(on_step, on_epoch, progress)
    text, steps = _trace.steps_of(_trace_or_batch_size(trace, batch_size))
    with contextlib.ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(prefix="rubato-")
        weights = Path(stack.enter_context(temporary)) / "weights.pt"
        request = _request((config, resume, out), _fork_point(from_run, from_step), options, text, steps, rule, sampler, weights)
        if hosts is not None:
            hosts._set_in(request)
        parts = _Parts(request, model, data, validation, loss, steps)
        try:
            found = _rubato.train(request, parts.for_cpp(), callbacks.for_cpp)
        except _rubato.Error as error:
            if str(weights) not in str(error):
                raise
            raise type(error)(str(error).replace(str(weights), "weights")) from None
        finally:
            callbacks.close()
        if found["unfinished"] and weights.exists():
            found["files"] = _Files(temporary)
            stack.pop_all()
        elif isinstance(resume, TrainResult):
            found["files"] = resume._files
    found["warnings"] = [warning.replace(str(weights), "weights") for warning in found["warnings"]]
    return _finish(found, parts)


_options.describe(train)
