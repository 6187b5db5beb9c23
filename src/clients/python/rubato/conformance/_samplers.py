"""Samplers under test: which samples the ranks get in which step, and how a later sampler continues."""

import copy
import inspect
import itertools
from collections import Counter

from . import _judge
from ._checks import fail
from ._search import Search


class SamplerSearch(Search):
    """Tries cases on a function that makes samplers."""

    def __init__(self, target, level, waive, claims):
        super().__init__(target, level, waive, claims)
        parameters = inspect.signature(target).parameters.values()
        # Found out by running it.
        self.yields_single, self.resumes = False, True
        self.takes = None if any(one.kind is one.VAR_KEYWORD for one in parameters) else {one.name for one in parameters}

    def iterators(self, case, phase, epoch, state):
        """An iterator of each rank's shares, and the samplers."""
        samplers = []
        for rank in range(phase.world_size):
            words = {"samples": case.samples, "world_size": phase.world_size, "rank": rank, "epoch": epoch, "batch": phase.batch,
                     "minibatch": phase.minibatch, "state": copy.deepcopy(state), "seed": 1}
            taken = words if self.takes is None else {word: words[word] for word in self.takes & set(words)}
            samplers.append(self.target(**taken))
        return [self.shares(iter(sampler), phase) for sampler in samplers], samplers

    def shares(self, indices, phase):
        """The lists of samples of one rank, one for each step."""
        for first in indices:
            if hasattr(first, "__iter__"):
                yield [int(index) for index in first]
                continue
            self.yields_single = True
            share = [int(first), *map(int, itertools.islice(indices, phase.minibatch - 1))]
            if self.claims["last"] != "drop" or len(share) == phase.minibatch:
                yield share

    def run(self, case):
        return self.attempt(case, lambda: self.counted(case))

    def counted(self, case):
        """The samples of each step, as Counters."""
        plan, counted, epoch, state, moved = case.plan(), [], 0, None, False
        for index, phase in enumerate(case.phases):
            iterators, samplers = self.iterators(case, phase, epoch, state)
            for step in range(len(counted), len(counted) + phase.steps):
                place = _judge.place_of(case, plan, step)
                shares = [next(iterator, None) for iterator in iterators]
                if all(share is None for share in shares) and (moved or state is not None):
                    # The epoch is over.
                    epoch, state, moved = epoch + 1, None, False
                    iterators, samplers = self.iterators(case, phase, epoch, None)
                    shares = [next(iterator, None) for iterator in iterators]
                if epoch != plan[step].epoch:
                    self.fail_epoch(case, plan, counted, epoch, shares)
                ended = [rank for rank, share in enumerate(shares) if share is None]
                if ended and "equal-steps" not in self.waive:
                    fail("equal-steps", case, place, "samples, or an empty list, on each rank",
                         f"the end of the epoch on rank {ended[0]}")
                outside = [sample for share in shares for sample in share or [] if not 0 <= sample < case.samples]
                if outside:
                    fail("runs", case, place, f"samples from 0 to {case.samples - 1}", f"{outside}")
                counted.append(Counter(sample for share in shares for sample in share or []))
                moved = True
            if index + 1 < len(case.phases):
                if not hasattr(samplers[0], "state_dict"):
                    self.resumes = False
                    return counted
                state, moved = samplers[0].state_dict(), False
        return counted

    def fail_epoch(self, case, plan, counted, epoch, shares):
        """Raises the violation of a sampler whose epoch ends too early or too late; an earlier one goes first."""
        _judge.judge_samples(case, plan, counted, None, self.tried)
        step = len(counted)
        expected = plan[step].epoch
        if epoch < expected:
            texts = (f"the end of epoch {epoch}, whose samples are all counted",
                     f"the samples {_judge.shown(sample for share in shares for sample in share or [])}")
        else:
            done = [samples for samples, at in zip(counted, plan) if at.epoch == expected]
            left = set(range(case.samples)).difference(*done)
            texts = f"samples that epoch {expected} has not counted: of {_judge.shown(left)}", "the end of the epoch"
        fail("every-sample-once", case, _judge.place_of(case, plan, step), *texts)

    def try_case(self, case):
        self.tried.add("equal-steps")
        # A sampler of single samples knows nothing of batches, which a loader then makes of equal minibatches.
        if self.yields_single and any(phase.batch % phase.world_size for phase in case.phases):
            return
        counted, single, plan = self.run(case), None, case.plan()
        if "same-order" not in self.waive and case.on_one_rank() != case:
            single = self.run(case.on_one_rank())
            self.tried.add("same-order")
        if self.resumes and len(case.phases) > 1:
            self.tried |= {"epoch-number", "resume-equal"}
        _judge.judge_samples(case, plan, counted, single, self.tried)
        if self.resumes and case.unbroken() != case:
            for step, (samples, other) in enumerate(zip(counted, self.run(case.unbroken()))):
                if samples != other:
                    fail("resume-equal", case, _judge.place_of(case, plan, step),
                         f"the samples without an interruption: {_judge.shown(other)}", _judge.shown(samples))
        if single is not None:
            _judge.judge_order(case, counted, single)
