"""Measures the cost of a rule in Python per step, compared with the built-in one: medians of trainings that take turns.

    PYTHONPATH=build/release/python /usr/bin/python3 bench/python/rule_cost.py [rounds]
"""

import statistics
import sys
import time

import rubato

# The steps take next to no time by themselves, so that the difference is due to the rule.
STEPS = {"model": "quadratic:dim=16,samples=6400", "trace": 64, "minibatch": 64, "epochs": 20, "threads": 1}


def linear(batch, found):
    return found["scale"]


def microseconds(**options):
    """The microseconds of a step, and the SHA-256 of the weights."""
    begun = time.monotonic()
    result = rubato.train(**STEPS, **options)
    return 1e6 * (time.monotonic() - begun) / result.steps.rows, result.sha256


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    ways = {"rule='linear'": {"rule": "linear"}, "rule=linear": {"rule": linear},
            "rule='linear', on_step": {"rule": "linear", "on_step": lambda step: None}}
    found = {name: [] for name in ways}
    weights = set()
    for _ in range(rounds):
        for name, options in ways.items():
            took, sha256 = microseconds(**options)
            found[name].append(took)
            weights.add(sha256)
    assert len(weights) == 1, "the rules differ"
    for name, took in found.items():
        print(f"{name:<24} {statistics.median(took):7.1f} us a step, from {min(took):.1f} to {max(took):.1f}")


if __name__ == "__main__":
    main()
