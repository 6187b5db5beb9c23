"""Timed windows, and the JSON line in which a peer reports them."""

import json
import statistics
import time


def steps_for(seconds, rate):
    """The number of steps that fill `seconds` at `rate` steps per second."""
    return max(1, round(seconds * rate))


def timed(run, barrier=lambda: None):
    """Seconds that `run` takes between two barriers."""
    barrier()
    start = time.perf_counter()
    run()
    barrier()
    return time.perf_counter() - start


def report(rates, **what):
    """Prints the median and the spread of the windows' samples per second."""
    print(
        json.dumps(
            {
                **what,
                "samples_per_second": round(statistics.median(rates), 1),
                "min": round(min(rates), 1),
                "max": round(max(rates), 1),
                "windows": len(rates),
            }
        ),
        flush=True,
    )
