"""What is tried: cases, each a training that is small enough to check by hand."""

import dataclasses
import re
from typing import NamedTuple

# Sizes of batches. With them, with UNIT, and with shares of these sizes, every correct order of sums, means and factors is exact
# in any binary format: all divisors are sums of two powers of two (Goldberg 1991, theorem 7).
SIZES = (1, 2, 3, 4, 6, 8)
# The gradient of a sample: the value of the one input that it has.
UNIT = 9
# Rates are products of one of each. No quotient of two is a number of ranks or of samples, so that a wrong rate and a sum
# instead of a mean are told apart.
_PLACE_FACTORS = (23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131)
_BATCH_FACTORS = {1: 5, 2: 7, 3: 11, 4: 13, 6: 17, 8: 19}


def counted_as(number, noun):
    """1 rank, 2 ranks."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Phase(NamedTuple):
    """A part of a training in which nothing changes. Between two of them it is interrupted and resumed.

    world_size, steps, batch: int
        ranks, steps, and samples in a step of all ranks together
    """

    world_size: int
    steps: int
    batch: int

    @property
    def minibatch(self):
        """The samples of one rank, rounded up."""
        return -(-self.batch // self.world_size)


class Step(NamedTuple):
    """What a step is to be: the index of its phase, its epoch, its samples, its place in the schedule."""

    phase: int
    epoch: int
    size: int
    position: int


@dataclasses.dataclass(frozen=True)
class Case:
    """A data set, and the phases of a training on it.

    samples: int
        in the data set
    phases: tuple of Phase
    last: "short" or "drop"
        the last batch of an epoch has the samples that are left, or they are dropped
    schedule: "steps", "samples" or "epochs"
        what the place in the schedule counts, from the start of the training
    tokens: tuple of int
        those of each sample; empty for one each
    flat: bool
        all rates are one, which leaves room in formats with few digits
    """

    samples: int
    phases: tuple
    last: str = "short"
    schedule: str = "steps"
    tokens: tuple = ()
    flat: bool = False

    def __str__(self):
        """A text that parse() reads: 10:2x3@6,1x1@6 has 10 samples; 2 ranks, 3 steps of 6; then 1 rank, 1 step of 6."""
        phases = ",".join(f"{phase.world_size}x{phase.steps}@{phase.batch}" for phase in self.phases)
        return f"{self.samples}:{phases}" + (f":{'.'.join(map(str, self.tokens))}" if self.tokens else "")

    @staticmethod
    def parse(text, **claims):
        """The case of a text, with `last`, `schedule` and `flat` as claimed. Raises ValueError."""
        found = re.fullmatch(r"(\d+):((?:\d+x\d+@\d+,?)+)(?::([\d.]+))?", text.strip())
        if not found or int(found[1]) < 1:
            raise ValueError(f"case: cannot read '{text}'; accepted: such as 10:2x3@6,1x1@6 (10 samples; 2 ranks, 3 steps of 6; "
                             "1 rank, 1 step of 6)")
        phases = tuple(Phase(*map(int, re.split("[x@]", phase))) for phase in found[2].strip(",").split(","))
        if any(number < 1 for phase in phases for number in phase):
            raise ValueError(f"case: a zero in '{text}'; accepted: numbers from 1")
        tokens = tuple(map(int, found[3].split("."))) if found[3] else ()
        case = Case(int(found[1]), phases, tokens=tokens, **claims)
        if not case.is_readable():
            raise ValueError(f"case: '{text}' has a step whose number of samples is none of {', '.join(map(str, SIZES))}, or the wrong "
                             "number of tokens")
        return case

    def in_words(self):
        """The case as a sentence."""
        phases = ", then ".join(f"{counted_as(phase.world_size, 'rank')} for {counted_as(phase.steps, 'step')} of {phase.batch}"
                                for phase in self.phases)
        tokens = f" with {' '.join(map(str, self.tokens))} tokens" if self.tokens else ""
        return f"{counted_as(self.samples, 'sample')}{tokens}; {phases}"

    def plan(self):
        """The Steps that the case asks for."""
        steps, left, epoch, seen = [], self.samples, 0, 0
        for index, phase in enumerate(self.phases):
            for _ in range(phase.steps):
                if left == 0 or (self.last == "drop" and left < phase.batch):
                    left, epoch = self.samples, epoch + 1
                size = min(phase.batch, left)
                position = {"steps": len(steps), "samples": seen, "epochs": epoch}[self.schedule]
                steps.append(Step(index, epoch, size, position))
                left -= size
                seen += size
        return steps

    def is_readable(self):
        """False if weights would not tell exactly what happened."""
        if self.last == "drop" and any(phase.batch > self.samples for phase in self.phases):
            return False
        if self.tokens and (len(self.tokens) != self.samples or any(phase.batch > 2 for phase in self.phases)):
            return False
        return all(step.size in SIZES and step.position < len(_PLACE_FACTORS) for step in self.plan()) and all(
            phase.batch in SIZES for phase in self.phases)

    def rate(self, position, batch):
        """The learning rate at a place of the schedule for a batch size: an integer that no other place or batch size has."""
        if self.flat:
            return 1
        place = _PLACE_FACTORS[position] if 0 <= position < len(_PLACE_FACTORS) else 137 + position
        return place * _BATCH_FACTORS.get(batch, 139 + batch)

    def _merged(self, phases):
        merged = []
        for phase in phases:
            if merged and merged[-1].world_size == phase.world_size and merged[-1].batch == phase.batch:
                merged[-1] = merged[-1]._replace(steps=merged[-1].steps + phase.steps)
            else:
                merged.append(phase)
        return dataclasses.replace(self, phases=tuple(merged))

    def unbroken(self):
        """The case without interruptions at which nothing changes."""
        return self._merged(self.phases)

    def on_one_rank(self):
        """The case on one rank, without interruptions but where the batch changes."""
        return self._merged(phase._replace(world_size=1) for phase in self.phases)
