#!/usr/bin/python3
"""The peer "one process": plain PyTorch with intra-op threads, and its fastest batch size, memory
layout and number of threads. Prints one line of JSON."""

import argparse
import itertools

import torch

from networks import LAYOUTS, NETWORKS, layouts_of, minibatches, network, sgd, train
from windows import Stopwatch, report

BATCHES = [32, 64, 128, 256, 512, 1024]
WARM_UP_STEPS = 5  # fewer of large batches, whose steps are long


class Candidate:
    """One setting, warmed up and ready to be timed."""

    def __init__(self, name, batch, layout, threads, compiled):
        self.batch = batch
        self.layout = layout
        self.threads = threads
        model = network(name, layout)
        optimizer, batches = sgd(model), minibatches(batch, layout)
        if compiled:
            model = torch.compile(model)  # PyTorch 2 has this
        self._watch = Stopwatch(lambda steps: train(model, optimizer, batches, steps))
        torch.set_num_threads(threads)
        self._steps_per_second = self._watch.steps_per_second(max(2, min(WARM_UP_STEPS, 512 // batch)))

    def samples_per_second(self, seconds):
        """The rate of one window of about that many seconds."""
        torch.set_num_threads(self.threads)
        steps = max(1, round(seconds * self._steps_per_second))
        self._steps_per_second = self._watch.steps_per_second(steps)
        return self._steps_per_second * self.batch


def best_of(candidates, seconds):
    """Returns the fastest candidate, judged by the better of two windows at different times."""
    rates = [[c.samples_per_second(seconds) for c in candidates] for _ in range(2)]
    return max(zip(candidates, map(max, *rates)), key=lambda pair: pair[1])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[2],
                        help="numbers of intra-op threads to try (2)")
    parser.add_argument("--batch", type=int, nargs="+", default=BATCHES, help="batch sizes to try")
    parser.add_argument("--network", choices=NETWORKS, default="mnist-cnn")
    parser.add_argument("--layout", nargs="+", choices=LAYOUTS, help="memory layouts to try")
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    parser.add_argument("--seconds", type=float, default=2, help="length of a timed window (2)")
    parser.add_argument("--windows", type=int, default=3, help="timed windows (3)")
    options = parser.parse_args()

    settings = itertools.product(options.batch, options.layout or layouts_of(options.network),
                                 options.threads)
    candidates = [Candidate(options.network, *setting, options.compile) for setting in settings]
    best = candidates[0] if len(candidates) == 1 else best_of(candidates, options.seconds / 4)
    best.samples_per_second(options.seconds / 4)
    rates = [best.samples_per_second(options.seconds) for _ in range(options.windows)]
    report(rates, peer="single", threads=best.threads, batch=best.batch, layout=best.layout)


if __name__ == "__main__":
    main()
