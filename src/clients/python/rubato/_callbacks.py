"""Callables of users that are called in training, as C++ takes them."""

import math
import sys
import time

from ._rubato import Error
from ._show import is_notebook

# Text that clears a line which is redrawn, and the one for a notebook, which knows only "\r".
_CLEAR = "\r\x1b[2K"
_BLANKS = f"\r{79 * ' '}\r"


def _number(name, key, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: '{key}' is of type {type(value).__name__}; accepted: a number") from None


def _checked(name, record, answer):
    """The answer of a callback for C++: False, None, or (the rate or None, {metric: number})."""
    if answer is False or not isinstance(answer, dict):
        return False if answer is False else None
    rate, metrics = None, {}
    for key, value in answer.items():
        if not isinstance(key, str):
            raise TypeError(f"{name}: a metric's name is of type {type(key).__name__}; accepted: text")
        number = _number(name, key, value)
        if key == "lr":
            if not math.isfinite(number) or number < 0:
                raise Error(f"{name}: lr {number}; accepted: finite numbers of at least 0")
            rate = number
        elif key in record:
            raise Error(f"{name}: '{key}' is one of rubato's metrics; accepted: another name")
        else:
            metrics[key] = number
    return rate, metrics


def _callback(name, callback):
    """A callback for C++; None if there is none."""
    if callback is None:
        return None
    if not callable(callback):
        raise TypeError(f"{name}: {type(callback).__name__} cannot be called")
    return lambda record: _checked(name, record, callback(record))


class NamedRule:
    """A user's rule with the name that it has in a run's configuration."""

    def __init__(self, name, rule):
        self.text = f"own:name={name}"
        self._rule = rule

    def __call__(self, batch, statistics):
        return self._rule(batch, statistics)

    def __getattr__(self, name):
        if name not in ("state", "load_state"):
            raise AttributeError(name)
        return getattr(self._rule, name)


# The keys of a dictionary that a rule may return (OptimizerAnswer in rubato/numbers/rule.hpp).
_ANSWERS = ("factor", "weight_decay_factor", "momentum", "beta1", "beta2", "epsilon", "mean_factor", "variance_factor",
            "forget_squares")


def _answered(name, value, batch):
    """The number that a rule has answered; C++ checks the ranges of all but the factor."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        accepted = "a number, or a dictionary with a factor and other numbers" if name == "factor" else "a number"
        of = "" if name == "factor" else f" as {name}"
        raise TypeError(f"rule: it returned an object of type {type(value).__name__}{of}; accepted: {accepted}") from None
    if name == "factor" and (not math.isfinite(number) or number < 0):
        raise Error(f"rule: it returned {number} for a step of batch {batch}; accepted: finite numbers of at least 0")
    return number


def rule_for_cpp(rule):
    """The calls of a rule for C++ (src/clients/python/callbacks.hpp); None if it is not a function."""
    if not callable(rule):
        return None

    def answer(batch, statistics):
        found = rule(batch, statistics)
        if not isinstance(found, dict):
            found = {"factor": found}
        for name in found:
            if name not in _ANSWERS:
                raise Error(f"rule: it returned a '{name}'; accepted: {', '.join(_ANSWERS)}")
        return {name: _answered(name, value, batch) for name, value in found.items()}

    state, load_state = getattr(rule, "state", None), getattr(rule, "load_state", None)
    if (state is None) != (load_state is None):
        raise TypeError("rule: it has one of state() and load_state(); accepted: both, or neither")
    return {"answer": answer, "state": state and (lambda: [float(number) for number in state()]), "load_state": load_state}


class _Shown:
    """The progress display of progress=True on sys.stderr.

    `for_cpp` is the function to which C++ writes, the descriptor of the terminal, and whether a line can be redrawn."""

    def __init__(self):
        self._out = sys.stderr
        is_terminal = self._out.isatty()
        in_notebook = is_notebook(self._out)
        self._clear = _BLANKS if in_notebook else _CLEAR
        self._is_drawn = False
        # Every drawing is kept in a notebook that is executed without a browser: fewer are enough.
        self._pause = 0.5 if in_notebook else 0.0
        self._last = 0.0
        # The descriptor that a notebook's output has is the terminal of Jupyter.
        self.for_cpp = (self._write, -1 if in_notebook else self._descriptor(), is_terminal or in_notebook)

    def close(self):
        """Clears a line that an exception has left."""
        if self._is_drawn:
            self._write(_CLEAR)

    def _write(self, text):
        is_drawing = not text.endswith(("\n", _CLEAR))
        if is_drawing and self._is_drawn and time.monotonic() < self._last + self._pause:
            return
        self._is_drawn, self._last = is_drawing, time.monotonic()
        print(text.replace(_CLEAR, self._clear), end="", file=self._out, flush=True)

    def _descriptor(self):
        try:
            return self._out.fileno()
        except (AttributeError, OSError, ValueError):
            return -1


class Callbacks:
    """The callbacks of a training: the user's, and the progress display."""

    def __init__(self, on_step, on_epoch, progress):
        self._shown = _Shown() if progress else None
        self.for_cpp = {"on_step": _callback("on_step", on_step), "on_epoch": _callback("on_epoch", on_epoch),
                        "progress": self._shown and self._shown.for_cpp}

    def close(self):
        if self._shown is not None:
            self._shown.close()
