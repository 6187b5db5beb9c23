"""Timed windows of whole steps, and the JSON line in which a peer reports them."""

import json
import statistics
import time


class Stopwatch:
    """Times runs of steps between two barriers, in every process of a peer."""

    def __init__(self, run, barrier=lambda: None):
        """`run(steps)` trains that many steps; `barrier()` waits for the other processes."""
        self._run = run
        self._barrier = barrier

    def steps_per_second(self, steps):
        self._barrier()
        start = time.perf_counter()
        self._run(steps)
        self._barrier()
        return steps / (time.perf_counter() - start)


def report(rates, **what):
    """Prints the median and the spread of the windows' samples per second."""
    line = {
        **what,
        "samples_per_second": round(statistics.median(rates), 1),
        "min": round(min(rates), 1),
        "max": round(max(rates), 1),
        "windows": len(rates),
    }
    print(json.dumps(line), flush=True)
