"""rubato.train()."""

import numbers
import os
import tempfile
import warnings
from pathlib import Path

import torch

from . import _data, _modules, _options, _rubato, _trace
from ._result import TrainResult


class Diverged(_rubato.Error):
    """The loss or the gradient became infinite or NaN; `result` has what there was before."""

    result = None


class TargetMissed(_rubato.Error):
    """The test accuracy is below target_accuracy; `result` is what the training came to."""

    result = None


class _Parts:
    """The model, the data and the loss of a training, as C++ takes them."""

    def __init__(self, model, data, validation, loss, minibatch):
        self.arguments = []
        self.script = self._loss = None
        self._train = self._test = None
        self._take_data(data, validation)
        if model is None or isinstance(model, str):
            if model is not None:
                self.arguments.append(f"--model={model}")
        else:
            script = _modules.scripted(model, lambda: self._minibatch(minibatch))
            self.script = _modules.bytes_of(script)
            self.arguments.append("--model=own")
        self._take_loss(loss)

    @property
    def is_real(self):
        """Whether it has data of its own whose targets are no classes."""
        return self._train is not None and self._train[1][0].is_floating_point()

    def for_cpp(self):
        return {"model": self.script, "loss": self._loss, "train": self._train, "test": self._test}

    def _take_data(self, data, validation):
        if isinstance(validation, (str, numbers.Real)):
            self.arguments.append(f"--validation={_options.text_of('validation', validation)}")
            validation = None
        if data is None or isinstance(data, (str, os.PathLike)):
            if validation is not None:
                raise _rubato.Error("validation: data with a name have a test set or none; accepted: the share of the "
                                    "training set to hold out, or data of your own")
            if data is not None:
                self.arguments.append(f"--data={os.fspath(data)}")
            return
        self._train = _data.tensors_of(data, "data")
        if validation is not None:
            self._test = _data.tensors_of(validation, "validation")
        self.arguments.append("--data=own")

    def _minibatch(self, size):
        """Inputs to trace a model with: the first minibatch, or one of the shape of the images that have a name."""
        if self._train is None:
            return [torch.zeros(size, 1, 28, 28)]
        return [tensor[:size].clone() for tensor in self._train[0]]

    def _take_loss(self, loss):
        if isinstance(loss, str):
            self.arguments.append(f"--loss={loss}")
        elif loss is not None:
            self._loss = _modules.loss_of(loss)


def _warn(texts):
    for text in texts:
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def _finish(found, parts):
    _warn(found["warnings"])
    if found["failure"] is not None:
        if found["checkpoint"]:
            _warn([f"the checkpoint is {found['checkpoint']}\nto go on: rubato.train(resume={found['folder']!r})"])
        raise found["failure"]
    result = TrainResult(found, parts.script, parts.is_real)
    if found["end"] == "interrupted":
        raise _rubato.Error("the interpreter is going, and training has ended with it")
    if found["end"] == "diverged":
        error = Diverged(f"{found['reason']}\ntry a lower --lr or another --rule")
    elif found["missed_target"]:
        error = TargetMissed(found["missed_target"])
    else:
        return result
    error.result = result
    raise error


# What is no file is written to one, and is called this in messages.
_NAMES = {"trace.csv": "trace", "weights.pt": "weights"}


def _without_files(text, folder):
    for file, name in _NAMES.items():
        text = text.replace(str(folder / file), name)
    return text


def _arguments(paths, options, trace, folder):
    """Those of `rubato train`; a trace and weights that are no files are written to `folder`."""
    if isinstance(options.get("weights"), dict):
        torch.save(options["weights"], folder / "weights.pt")
        options = options | {"weights": folder / "weights.pt"}
    arguments = [f"--{name}={os.fspath(path)}" for name, path in paths.items() if path is not None]
    arguments += [f"--{name}={text}" for name, text in _options.texts_of("train", options)]
    text, steps = _trace.steps_of(trace)
    if steps is not None:
        text = str(folder / "trace.csv")
        Path(text).write_text(steps.csv(), encoding="utf-8")
        if "on_trace_end" not in options:
            arguments.append(f"--on-trace-end={steps.end()}")
    if text is not None:
        arguments.append(f"--trace={text}")
    return arguments


def train(model=None, data=None, *, trace=None, validation=None, loss=None, out=None, resume=None, config=None,
          on_step=None, on_epoch=None, **options):
    """Trains a model while the number of accelerator cores, and with it the global batch size, changes under it.

    The weights are the same bits as those of `rubato train` with the same options, and for every number of threads
    and cores. Returns a TrainResult. All options that are None are as `rubato train` has them by default.

    model:
        the name of a built-in model (docs/models.md), a torch.nn.Module, which is scripted or else traced with the
        first minibatch, or a torch.jit.ScriptModule. It is copied, and left as it is. [mnist-cnn]
    data:
        the name of a data set, (inputs, targets), each an array or a tensor or a list of some, whose first dimension is
        the samples, or a TensorDataset. They are read as `tensors:FILE` reads them (docs/data.md): pixels of uint8 are
        normalised, integers as targets are classes. They are not copied where they are dense: leave them as they are
        meanwhile. Several inputs or targets of a sample need a model of your own. [digits]
    trace:
        a list or an array of batch sizes or of (batch size, cores), a Trace or an Availability, or as --trace takes it:
        a file, a number, "elastic", or a generator such as "spot:most=64,seed=1". [elastic]
    validation:
        what the model is evaluated on after each epoch in place of the test set: (inputs, targets) beside data of your
        own, or the share of the training set to hold out, a number or text as --validation has it.
    loss:
        the name of one ("cross-entropy", "nll", "mse", "bce", "script:FILE"), or a function or module of outputs and
        targets that TorchScript compiles. [nll of models with a name, cross-entropy of your own, mse of real targets]
    out:
        the run folder, which must not exist; by default nothing is written.
    resume:
        a run folder or one of its checkpoints, to go on with the same model and data.
    config:
        a configuration file, as a run folder has it; arguments override it.
    on_step, on_epoch:
        called with a dictionary of metrics, named as in metrics.jsonl, after each step or epoch. False ends training.

    Ctrl-C finishes the step, writes a checkpoint where there is a run folder, and raises KeyboardInterrupt; so does
    whatever on_step or on_epoch raises. Other threads run while training does; a second training at the same time
    is an error.

    Raises Error for what is wrong with arguments, files or data, Diverged, TargetMissed, TrainingError for what the
    model raises, OutOfMemory, and OutputError where the run folder cannot be written.
    """
    for name, callback in (("on_step", on_step), ("on_epoch", on_epoch)):
        if callback is not None and not callable(callback):
            raise TypeError(f"{name}: {type(callback).__name__} cannot be called")
    paths = {"out": out, "resume": resume, "config": config}
    with tempfile.TemporaryDirectory(prefix="rubato-") as folder:
        folder = Path(folder)
        arguments = _arguments(paths, options, trace, folder)
        parts = _Parts(model, data, validation, loss, options.get("minibatch") or 32)
        try:
            found = _rubato.train(arguments + parts.arguments, parts.for_cpp(), on_step, on_epoch)
        except _rubato.Error as error:
            if str(folder) not in str(error):
                raise
            raise type(error)(_without_files(str(error), folder)) from None
    found["summary"] = _without_files(found["summary"], folder)
    return _finish(found, parts)


_options.describe(train)
