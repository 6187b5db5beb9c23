"""What a training came to."""

import io
import json

import torch

from . import models
from ._columns import Columns


class TrainResult:
    """What rubato.train() returns, and what its exceptions have as `result`.

    steps, epochs, minibatches, faults, monitored: Columns
        the metrics of each kind of line of metrics.jsonl, under its names ("seconds": {"wall"} is wall_seconds), but for
        substeps, which is a list there; minibatches with log_minibatches=True, faults are of cores that died,
        monitored are the tensors that `monitor` names
    state_dict: dict of tensors
        the trained weights, for Module.load_state_dict()
    best_state_dict, best_epoch
        with keep_best=True, of the epoch (counted from 0) that was best by the metric `watch`; else None
    summary: dict
        as summary.json has it (docs/options.md); empty for a training that was interrupted, which has all else
    folder: str or None
        the run folder, with `out` or `resume`
    """

    def __init__(self, found, script):
        self.steps = Columns(found["steps"])
        self.epochs = Columns(found["epochs"])
        self.minibatches = Columns(found["minibatches"])
        self.faults = Columns(found["faults"])
        self.monitored = Columns(found["monitored"])
        self.state_dict = found["weights"]
        self.best_state_dict = found["best"]
        self.best_epoch = found["best_epoch"] if found["best"] is not None else None
        self.summary = json.loads(found["summary"]) if found["summary"] else {}
        self.folder = found["folder"] or None
        self._script = found["model"] or script
        self._model = found["model_name"]
        self._has_real_targets = found["has_real_targets"]
        self._module = None

    @property
    def sha256(self):
        """The SHA-256 of the trained parameters, as the command line prints it; None where it was interrupted."""
        return self.summary.get("weights_sha256")

    @property
    def test_accuracy(self):
        """After the last epoch, 0 to 1; None where there is none."""
        return self.summary.get("final_test_accuracy")

    @property
    def stopped(self):
        """Why it ended before its epochs did; None where it did not."""
        return self.summary.get("stopped")

    @property
    def module(self):
        """The model with the trained weights, as a torch.jit.ScriptModule in evaluation mode."""
        if self._module is None:
            if self._script is None:
                module = torch.jit.script(models.twin(self._model, self.state_dict, self._has_real_targets))
            else:
                # A copy: what was trained from is left as it is.
                module = torch.jit.load(io.BytesIO(self._script))
            module.load_state_dict(self.state_dict)
            self._module = module.eval()
        return self._module

    def __repr__(self):
        accuracy = self.test_accuracy
        text = "" if accuracy is None else f", test accuracy {100 * accuracy:.2f} %"
        return f"<rubato.TrainResult: {self.epochs.rows} epochs, {self.steps.rows} steps{text}>"
