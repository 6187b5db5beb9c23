"""What a loop under test gets, and what it tells: Job."""

import json
import os
import threading
import time
from pathlib import Path

from ._cases import UNIT, Case, Phase

_FOLDER = "RUBATO_CONFORMANCE"


def flat(values):
    """Numbers of a tensor, an array or nested lists as one list of floats."""
    for name in ("detach", "tolist"):
        if hasattr(values, name):
            values = getattr(values, name)()
    if isinstance(values, (list, tuple)):
        return [number for value in values for number in flat(value)]
    return [float(values)]


class Job:
    """A linear model without bias, its data, and its rates.

    The sample i has the inputs `inputs[i]`: zeros, but for 9 at place i. The loss of a sample is minus the output of the model,
    times its tokens. Plain SGD from weights of zero then adds rate x 9 / batch to the weight i for each time that sample i counts:
    the weights are the record of the training.

    samples: int
    seed: int
        for whatever is drawn, such as the order of the samples
    """

    seed = 1
    #: Share of a step in running statistics, as `momentum=` of torch's BatchNorm.
    momentum = 0.5

    def __init__(self, case):
        self._case = case
        self.samples = case.samples
        self.reads_tokens = False
        self.entries = []
        self._lock = threading.Lock()
        self.begin()

    def begin(self):
        """Called by the kit before each phase: the next step of every rank follows those recorded so far."""
        self._first = 1 + max((entry["step"] for entry in self.entries), default=-1)
        self._counts = {}

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state):
        vars(self).update(state, _lock=threading.Lock())

    def __len__(self):
        return self.samples

    @property
    def inputs(self):
        """An array of float64, samples x samples."""
        import numpy

        return numpy.eye(self.samples) * UNIT

    @property
    def tokens(self):
        """The tokens of each sample. A loop that reads them is expected to weight by them."""
        self.reads_tokens = True
        return list(self._case.tokens or (1,) * self.samples)

    def rate(self, position, batch):
        """The learning rate of a step: schedule and rule in one.

        position: steps (with schedule="samples": samples, with "epochs": epochs) from the start of the training to the step
        batch: samples in the step; for the last batch of an epoch, a full batch is as well
        """
        return float(self._case.rate(int(position), int(batch)))

    def record(self, weights, *, rank=0, step=None, buffers=None, random=None):
        """Called by the loop after every step, on one rank or on all.

        step: the index of the step in the training; needed only by programs, which may repeat steps after a restart
        buffers: running mean of the inputs of all ranks, from zeros and with `momentum`
        random: the number that this rank has drawn in the step, or a list of those of all ranks
        """
        with self._lock:
            index = self._counts.get(rank, self._first) if step is None else int(step)
            self._counts[rank] = index + 1
            self._take({"rank": int(rank), "step": index, "weights": flat(weights),
                        "buffers": None if buffers is None else flat(buffers), "random": None if random is None else flat(random)})

    def _take(self, entry):
        self.entries.append(entry)


class ProcessJob(Job):
    """The job of a program that check_resume() has started.

    steps, batch: int
        to train in all, and the samples in each step
    folder: Path
        for checkpoints, and whatever else the program keeps from one start to the next
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        settings = json.loads((self.folder / "case.json").read_text())
        settings["phases"] = tuple(Phase(*phase) for phase in settings["phases"])
        settings["tokens"] = tuple(settings["tokens"])
        self._kill_after = settings.pop("kill_after")
        super().__init__(Case(**settings))
        self.steps = sum(phase.steps for phase in self._case.phases)
        self.batch = self._case.phases[0].batch

    def _take(self, entry):
        with open(self.folder / f"records-{entry['rank']}.jsonl", "a") as file:
            file.write(json.dumps(entry) + "\n")
        if self._kill_after is not None and entry["step"] + 1 >= self._kill_after and entry["rank"] == 0:
            (self.folder / "kill").touch()
            while True:
                time.sleep(60)


def current_job():
    """The Job of a program that check_resume() has started; None if something else has started it."""
    folder = os.environ.get(_FOLDER)
    return ProcessJob(folder) if folder else None
