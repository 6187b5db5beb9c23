"""The result of a training, runs in folders, and the columns of these and other results."""

import io
import json
import os

import torch

from . import _data, _modules, _rubato, models
from ._show import columns_of_numbers, plot_column


class Columns(dict):
    """A dictionary of columns by name: numpy arrays of the same length."""

    @property
    def rows(self):
        """The number of rows."""
        return len(next(iter(self.values()))) if self else 0

    def to_pandas(self):
        """The same as a pandas.DataFrame. Raises ImportError if pandas is not installed."""
        import pandas

        return pandas.DataFrame(dict(self))

    def __repr__(self):
        return f"<{self.rows} rows of {', '.join(self)}>"


def _of_summary(key, doc):
    return property(lambda self: self.summary.get(key), doc=doc)


class _Recorded:
    """Common part of results and of runs in folders: what was recorded of a training."""

    def __init__(self, found):
        """`found` has the columns of the records by their names, and "summary", the text of summary.json or ""."""
        self.steps, self.epochs, self.minibatches, self.faults, self.monitored = (
            Columns(found[name]) for name in ("steps", "epochs", "minibatches", "faults", "monitored"))
        self.summary = json.loads(found["summary"]) if found["summary"] else {}

    sha256 = _of_summary(
        "weights_sha256", "The SHA-256 of the trained parameters, as the command line prints it; None if training was interrupted.")
    digest = _of_summary("digest", "The digests of all steps, chained, as summary.json has it; None if there are none.")
    test_accuracy = _of_summary(
        "final_test_accuracy", "The test accuracy after the last epoch, from 0 to 1; None if there is none.")
    stopped = _of_summary("stopped", "Why training ended early; None if it did not.")

    def plot(self, column="loss", axes=None):
        """Draws a column of numbers, of `steps` or else of `epochs`, with matplotlib, on new axes unless there are some,
        and returns the axes."""
        accepted = {}
        for over, records in (("epoch", self.epochs), ("step", self.steps)):
            accepted |= dict.fromkeys(columns_of_numbers(records), (records, over))
        if column not in accepted:
            raise _rubato.Error(f"plot: there is no column of numbers '{column}'; accepted: "
                                f"{', '.join(accepted) or 'a run with a step'}")
        return plot_column(*accepted[column], column, axes)

    def _text(self):
        accuracy = self.test_accuracy
        text = "" if accuracy is None else f", test accuracy {100 * accuracy:.2f} %"
        return f"{self.epochs.rows} epochs, {self.steps.rows} steps{text}"


class TrainResult(_Recorded):
    """Returned by rubato.train(), and the `result` of its exceptions.

    steps, epochs, minibatches, faults, monitored: Columns
        the metrics of each kind of line in metrics.jsonl, under the names there ("seconds": {"wall"} becomes
        wall_seconds) and without substeps, which is a list; minibatches need log_minibatches=True, faults are cores
        that died, monitored are the tensors named by `monitor`
    state_dict: dict of tensors
        the trained weights, for Module.load_state_dict(): without buffers that are registered with persistent=False
    other_weights: dict of dicts of tensors
        the weights beside them, with buffers, by the names of their files: "best" with keep_best=True, and those of
        options that keep weights of their own
    best_epoch: int or None
        with keep_best=True, the number, from 0, of the epoch that was best by the metric `watch`
    summary: dict
        as summary.json has it (docs/runs.md); empty if training was interrupted
    folder: str or None
        the run folder, with `out` or `resume`
    """

    def __init__(self, found, script, transient=()):
        super().__init__(found)
        self._transient = transient
        weights = {name: self._without_transient(tensors) for name, tensors in found["weights"].items()}
        self.state_dict = weights.pop("")
        self.other_weights = weights
        self.best_epoch = found["best_epoch"]
        self.folder = found["folder"] or None
        self._script = found["model"] or script
        self._model = found["model_name"]
        self._has_real_targets = found["has_real_targets"]
        self._trained_on = found["trained_on"]
        self._unfinished = found["unfinished"]
        self._files = found.get("files")
        self._module = None

    def _way_on(self):
        """The folder from which a training continues this one, or what it continues from without a folder; the other is
        None."""
        if self.folder is None and self._unfinished is None:
            raise _rubato.Error("resume: the training has ended; accepted: the result of one that was interrupted")
        return self.folder, self._unfinished

    def _without_transient(self, weights):
        return {name: tensor for name, tensor in weights.items() if name not in self._transient}

    @property
    def module(self):
        """The model with the trained weights, as a torch.jit.ScriptModule in evaluation mode."""
        if self._module is None:
            if self._script is None:
                # The initial values are drawn for nothing, so the generator is restored.
                with torch.random.fork_rng(devices=[]):
                    twin = models.twin(self._model, self.state_dict, self._has_real_targets)
                module = torch.jit.script(twin.float())
            else:
                # The copy leaves the module from which training began unchanged.
                module = torch.jit.load(io.BytesIO(self._script))
            # Transient buffers have their values in the script.
            module.load_state_dict(self.state_dict, strict=not self._transient)
            self._module = module.eval()
        return self._module

    def predict(self, inputs):
        """The outputs of the trained model in evaluation mode: a tensor, or a list of several.

        inputs: an array or a tensor whose first dimension counts samples, or a list of several, of the type and shape
        of the training inputs. Pixels are normalised by the training set, whose memory the result keeps.
        """
        tensors = _data.tensor_list(inputs, "inputs")
        outputs = _rubato.predict(self._trained_on, _modules.bytes_of(self.module), tensors)
        return outputs[0] if len(outputs) == 1 else outputs

    def evaluate(self, inputs, targets):
        """Evaluates the trained model on samples as training does: a dictionary of samples, loss, accuracy if targets
        are classes, and the further metrics of the training. Inputs are as for predict()."""
        tensors = _data.tensor_list(inputs, "inputs"), _data.tensor_list(targets, "targets")
        return _rubato.evaluate(self._trained_on, _modules.bytes_of(self.module), *tensors)

    def _repr_html_(self):
        summary = json.dumps(self.summary) if self.summary else ""
        return _rubato.html_of_result(self._trained_on, self.steps, self.epochs, self.faults, summary)

    def __repr__(self):
        return f"<rubato.TrainResult: {self._text()}>"


class Run(_Recorded):
    """The folder of a run, which may still be training: Run("runs/first") has what was recorded until then.

    steps, epochs, minibatches, faults, monitored, summary:
        as those of a TrainResult, from the run's beginning; the summary is empty unless the run has ended
    folder: str

    Raises Error if it is not the folder of a run.
    """

    def __init__(self, folder):
        self.folder = os.fspath(folder)
        super().__init__(_rubato.recorded_run(self.folder))

    def _repr_html_(self):
        return _rubato.html_of_folder(self.folder)

    def __repr__(self):
        return f"<rubato.Run: {self._text()}, {self.folder}>"
