"""Traces of steps, and the availability of devices over time behind them (docs/traces.md)."""

import numbers
import os
import reprlib

import numpy

from . import _rubato
from ._show import plot_sizes


def _number(number):
    if not isinstance(number, numbers.Integral) or isinstance(number, bool):
        raise _rubato.Error(f"a step of {reprlib.repr(number)}; accepted: whole numbers, a batch size or (batch size, cores)")
    # Numbers that C++ cannot hold, or add up, are not passed to it.
    if abs(number) >= 2**42:
        raise _rubato.Error(f"a step of {number}; accepted: up to 2**40 samples on up to 2**20 cores")
    return int(number)


def _cores(cores):
    if cores is None:
        return None
    return [_number(number) for number in cores] if isinstance(cores, (tuple, list)) else _number(cores)


def _pair(step):
    """(batch size, cores) of an element of a list; cores are None, a number, or a list of one for each host."""
    batch, cores = step if isinstance(step, (tuple, list)) else (step, None)
    return _number(batch), _cores(cores)


class _Csv:
    """Common part of traces and availabilities; `_of` is the object of C++."""

    def __init__(self, of):
        self._of = of

    def _repr_html_(self):
        return _rubato.html_of_steps(self._of)

    @property
    def end(self):
        """What follows the last step: error, hold, cycle or stop."""
        return self._of.end()

    @property
    def source(self):
        """Its origin, for messages."""
        return self._of.source()

    def to_csv(self, path=None):
        """Writes it as the CSV that read() reads, or returns that as text."""
        text = self._of.csv()
        if path is None:
            return text
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return None


class Trace(_Csv):
    """The global batch size of every step, and optionally the number of cores.

    Trace([256, 256, 96]) or Trace([(256, 8), (96, 3)]) or of an array; `end` says what follows the last step:
    error, hold (that step for ever), cycle (the trace again) or stop (training ends). Cores may be a number for each of
    several hosts, (256, (4, 2, 2)).
    """

    def __init__(self, steps, end="error"):
        pairs = [_pair(step.tolist() if isinstance(step, (numpy.ndarray, numpy.generic)) else step) for step in steps]
        super().__init__(_rubato.Trace(pairs, end, f"a list of {len(pairs)} steps"))

    @classmethod
    def _wrap(cls, of):
        kind = cls if isinstance(of, _rubato.Trace) else Availability
        trace = kind.__new__(kind)
        _Csv.__init__(trace, of)
        return trace

    @classmethod
    def read(cls, name, end=None):
        """Reads what --trace takes: a file with a trace or with the availability of devices, a batch size, "elastic", or a
        generator. Returns a Trace or an Availability. Raises Error with file and line."""
        return cls._wrap(_rubato.load_trace(os.fspath(name) if isinstance(name, os.PathLike) else str(name), end))

    @staticmethod
    def import_file(path, format=None, end="error"):
        """An Availability from a file in any known format: samples or events. It is
        recognised from the beginning of the file unless `format` names it. "FILE,column=NAME" or "FILE,zone=TEXT" says
        which of several columns of devices count."""
        return Trace._wrap(_rubato.import_trace(os.fspath(path), format, end))

    @staticmethod
    def generate(text, end="error"):
        """An Availability that is made up, such as "spot:most=64,seed=1"; Trace.generators() has the names. The same
        text always gives the same availability."""
        return Trace._wrap(_rubato.generate_trace(text, end))

    @staticmethod
    def generators():
        """The names of all that generate() can make."""
        return _rubato.families()["generators"]

    @property
    def batch_sizes(self):
        """Samples of each step: an array of int64."""
        return numpy.array([batch for batch, _ in self._of.steps()], dtype=numpy.int64)

    @property
    def cores(self):
        """Cores of each step: an array of int64, 0 if the trace does not say."""
        numbers = [sum(cores) if isinstance(cores, list) else cores or 0 for _, cores in self._of.steps()]
        return numpy.array(numbers, dtype=numpy.int64)

    def __len__(self):
        return len(self._of.steps())

    def __iter__(self):
        return iter(self._of.steps())

    def __repr__(self):
        return f"<rubato.Trace: {len(self)} steps, {self.source}>"

    def plot(self, axes=None):
        """Draws the batch sizes with matplotlib, on new axes unless there are some, and returns the axes."""
        return plot_sizes(range(len(self)), self.batch_sizes, axes, xlabel="step", ylabel="batch size", title=self.source)


class Availability(_Csv):
    """The number of devices over time: `devices[i]` from `seconds[i]` on, until `length` seconds."""

    def __init__(self, seconds, devices, length, end="error"):
        seconds, devices = list(seconds), list(devices)
        if len(seconds) != len(devices):
            raise _rubato.Error(f"{len(seconds)} times and {len(devices)} numbers of devices; accepted: as many of both")
        changes = [(float(at), int(count)) for at, count in zip(seconds, devices)]
        super().__init__(_rubato.Availability(changes, float(length), end, f"a list of {len(changes)} changes"))

    @property
    def seconds(self):
        """The times at which the number of devices changes: an array of float64, from 0 on."""
        return numpy.array([at for at, _ in self._of.changes()])

    @property
    def devices(self):
        """The number of devices from each of these times on: an array of int64."""
        return numpy.array([count for _, count in self._of.changes()], dtype=numpy.int64)

    @property
    def length(self):
        """The length in seconds."""
        return self._of.length()

    @property
    def summary(self):
        """A dictionary: fewest, most, mean, changes, changes_per_hour, share_at_zero, longest_at_zero_seconds."""
        return self._of.summary()

    def to_trace(self, availability="weak", minibatch=32):
        """The steps that training would make of it with that --availability. Raises Error."""
        return Trace._wrap(self._of.steps(availability, minibatch))

    def __repr__(self):
        return f"<rubato.Availability: {len(self.seconds)} changes in {self.length:g} s, {self.source}>"

    def plot(self, axes=None):
        """Draws the devices with matplotlib, on new axes unless there are some, and returns the axes."""
        hours = numpy.append(self.seconds, self.length) / 3600
        devices = numpy.append(self.devices, self.devices[-1])
        return plot_sizes(hours, devices, axes, xlabel="hours", ylabel="devices", title=self.source)


def steps_of(trace):
    """The value of `trace=` as (text for --trace, None) or, for a list or a Trace, (None, the C++ object)."""
    if trace is None or isinstance(trace, (str, os.PathLike)) or (
            isinstance(trace, numbers.Integral) and not isinstance(trace, bool)):
        return None if trace is None else str(trace), None
    if not isinstance(trace, _Csv):
        try:
            trace = Trace(trace)
        except TypeError:
            raise _rubato.Error(f"trace: {type(trace).__name__} is not a trace; accepted: a list of batch sizes or of "
                                "(batch size, cores), a rubato.Trace, a file, a number, elastic, or a generator") from None
    return None, trace._of
