"""What training would do, without training: rubato.plan() and rubato.simulate()."""

import itertools

import numpy

from . import _options, _rubato, _trace
from ._result import Columns

_PLANNED = [option["name"] for option in _options.TABLE if option["is_planned"]]
_SIMULATED = [option["name"] for option in _options.TABLE if option["is_simulated"]]


class Epoch:
    """An epoch of a plan.

    index: int
        counted from 0
    complete: bool
        False if the trace ends within it
    steps: Columns
        step, batch, cores, first_minibatch, minibatches, shift
    """

    def __init__(self, found, assignment):
        self.index = found["epoch"]
        self.complete = found["complete"]
        self.steps = Columns(found["steps"])
        self._assignment = assignment

    def shares(self, row):
        """For each core, the minibatches of the epoch that it computes in the step of that row."""
        return _rubato.shares(*(int(self.steps[name][row]) for name in ("first_minibatch", "minibatches", "cores")),
                              self._assignment)

    def __repr__(self):
        return f"<rubato.Epoch {self.index}: {self.steps.rows} steps>"


def plan(trace=None, *, dataset_size=None, epochs=None, **options):
    """The steps of a trace as a list of Epochs: all of them, or one if the trace never ends.

    trace:
        as rubato.train() takes it
    dataset_size:
        samples in the data set [that of the built-in data]
    epochs:
        only that many epochs from the first
    """
    text, steps = _trace.steps_of(trace)
    texts = _options.texts_of("plan", options, _PLANNED)
    if text is not None:
        texts.append(("trace", text))
    assignment = dict(texts).get("assignment", "contiguous")
    return [Epoch(found, assignment) for found in _rubato.plan(texts, steps, dataset_size, epochs)]


def _values(word, value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def simulate(trace=None, *, dataset_size=None, **options):
    """The time and cost of trainings on an imagined cluster, without training (docs/cluster.md).

    Every option may be a list of values: all combinations are simulated. Returns Columns with a row for each: those
    options, and epochs, steps, samples, mean_batch, fewest_cores, most_cores, hours, core_hours, money, idle_hours,
    lost_hours, restart_hours, restarts, ended_by.

    trace:
        as rubato.train() takes it: a list is one trace, not several
    dataset_size:
        samples in the data set [that of the built-in data]
    """
    text, steps = _trace.steps_of(trace)
    fixed = [] if text is None else [("trace", text)]
    axes = [(_options.option_name(word, "simulate", _SIMULATED), word, _values(word, value))
            for word, value in options.items() if value is not None]
    axes.sort(key=_options.plugin_first)
    varied = [word for _, word, values in axes if len(values) > 1]
    rows = []
    for combination in itertools.product(*(values for _, _, values in axes)):
        texts = [(name, _options.text_of(word, value)) for (name, word, _), value in zip(axes, combination)]
        row = {word: value for (_, word, _), value in zip(axes, combination) if word in varied}
        rows.append({**row, **_rubato.simulate(fixed + texts, steps, dataset_size)})
    return Columns({name: numpy.array([row[name] for row in rows]) for name in rows[0]} if rows else {})


_options.describe(plan, _PLANNED)
_options.describe(simulate, _SIMULATED)
