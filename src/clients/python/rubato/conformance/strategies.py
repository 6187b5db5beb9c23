"""Hypothesis strategies: cases, and what they are made of, for tests of your own."""

import dataclasses

from hypothesis import assume
from hypothesis import strategies as st

from ._cases import SIZES, Case, Phase

# The longest case: four phases of three steps.
_PHASES, _STEPS, _SAMPLES = 4, 3, 16


def world_sizes(most=4):
    """Numbers of ranks."""
    return st.integers(1, most)


def dataset_sizes(most=_SAMPLES):
    """Numbers of samples."""
    return st.integers(1, most)


def traces(most_ranks=4, read=None):
    """Numbers of ranks over time, as lists of (ranks, steps) with at most four entries.

    read: list of (ranks, steps)
        a real trace, such as one that read_trace() returns; parts of it are drawn, with at most three steps of each entry
    """
    if not read:
        return st.lists(st.tuples(world_sizes(most_ranks), st.integers(1, _STEPS)), min_size=1, max_size=_PHASES)

    def part(place):
        begin, length = place
        return [(min(ranks, most_ranks), min(steps, _STEPS)) for ranks, steps in read[begin:begin + length]]

    return st.tuples(st.integers(0, len(read) - 1), st.integers(1, _PHASES)).map(part)


def kills(most_steps=_STEPS):
    """Interruptions of a training on one number of ranks: (ranks, steps before, steps after)."""
    return st.tuples(world_sizes(), st.integers(1, most_steps), st.integers(1, most_steps))


@st.composite
def cases(draw, last="short", schedule="steps", batch="any", divisible=False, ranks=4, tokens=False, interrupted=False, flat=False,
          trace=None):
    """Cases for check_sampler() and check_loop(), whose arguments have the same names.

    tokens: bool
        samples have one token or three
    interrupted: bool
        every case has an interruption
    """
    drawn = traces(ranks, trace)
    phases = draw(drawn.filter(lambda found: len(found) > 1) if interrupted else drawn)
    if tokens:
        phases = [(min(world, 2), steps) for world, steps in phases]
    worlds = {world for world, _ in phases}
    # Batches of all phases, the simplest first, as Hypothesis shrinks towards it.
    choices = []
    if batch in ("any", "fixed"):
        choices += [[size] * len(phases) for size in SIZES if not divisible or all(size % world == 0 for world in worlds)]
    if batch in ("any", "per-rank"):
        choices += [[size * world for world, _ in phases] for size in SIZES if all(size * world in SIZES for world in worlds)]
    if not choices:
        # A resize to a world size without a common batch, such as 3 after 4.
        phases, choices = [(1, 1)] * (1 + interrupted), [[1] * (1 + interrupted)]
    batches = draw(st.sampled_from(choices))
    made = tuple(Phase(*phase, batch) for phase, batch in zip(phases, batches))
    case = Case(0, made, last, schedule, (), flat)
    fitting = [samples for samples in range(1, _SAMPLES + 1) if _fits(case, samples, tokens, divisible)]
    assume(fitting)
    samples = draw(st.sampled_from(fitting))
    return dataclasses.replace(case, samples=samples, tokens=tuple(
        draw(st.lists(st.sampled_from((1, 3)), min_size=samples, max_size=samples))) if tokens else ())


def _fits(case, samples, tokens, divisible):
    case = dataclasses.replace(case, samples=samples, tokens=(1,) * samples if tokens else ())
    return case.is_readable() and not (divisible and any(step.size % case.phases[step.phase].world_size for step in case.plan()))
