"""What users' callbacks answer, as C++ takes it."""

import math

from ._progress import Progress
from ._rubato import Error


def _number(name, key, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: '{key}' is of type {type(value).__name__}; accepted: a number") from None


def _checked(name, record, answer):
    """False, None, or (the rate or None, {metric: number}): what a callback wants of a training."""
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


def _together(name, callback, shown):
    """One callback for C++, of the user's and that of the progress; each may be None."""
    if callback is None and shown is None:
        return None

    def call(record):
        if shown is not None:
            shown(record)
        return None if callback is None else _checked(name, record, callback(record))

    return call


class Callbacks:
    """The callbacks of a training: the user's, and those of progress=True."""

    def __init__(self, on_step, on_epoch, progress):
        for name, callback in (("on_step", on_step), ("on_epoch", on_epoch)):
            if callback is not None and not callable(callback):
                raise TypeError(f"{name}: {type(callback).__name__} cannot be called")
        self._progress = Progress() if progress else None
        shown = self._progress
        self.for_cpp = {"on_step": _together("on_step", on_step, shown and shown.on_step),
                        "on_epoch": _together("on_epoch", on_epoch, shown and shown.on_epoch),
                        "on_epoch_begin": shown and shown.on_epoch_begin}

    def close(self):
        if self._progress is not None:
            self._progress.close()
