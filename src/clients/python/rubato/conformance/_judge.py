"""What the records of a run say about it: the checks of weights, samples, buffers and random numbers."""

from collections import Counter
from fractions import Fraction

from ._cases import UNIT, counted_as
from ._checks import fail


class Run:
    """The steps of a run: what each rank recorded, and what the weights say counted.

    steps: list of {rank: entry of Job.entries}
    weights: list of list of float
        after each step, on the lowest rank
    values: list of list of Fraction
        what each step added to the weights, in gradients of one sample
    counted: list of Counter
        the samples that counted in each step
    """

    def __init__(self, case, entries):
        self.case = case
        ranks = {}
        for entry in entries:
            # A step that was repeated after a restart counts as it was repeated.
            ranks.setdefault(entry["step"], {})[entry["rank"]] = entry
        self.steps = [ranks[step] for step in sorted(ranks)]
        self.numbers = sorted(ranks)
        self.weights = [by_rank[min(by_rank)]["weights"] for by_rank in self.steps]
        self.values, before = [], [Fraction(0)] * case.samples
        for step, weights in enumerate(self.weights):
            if len(weights) != case.samples:
                fail("every-step", case, f"step {step}", f"{case.samples} weights", f"{len(weights)}")
            if not all(abs(weight) < float("inf") for weight in weights):
                fail("every-step", case, f"step {step}", "finite weights", f"{weights}")
            now = [Fraction(weight) for weight in weights]
            self.values.append([(new - old) / UNIT for new, old in zip(now, before)])
            before = now
        self.counted = [Counter({sample: 1 for sample, value in enumerate(values) if value}) for values in self.values]

    def buffers(self, step):
        return self.steps[step][min(self.steps[step])]["buffers"]

    def random(self, step):
        """The numbers drawn in a step, by rank."""
        drawn = {rank: entry["random"] for rank, entry in self.steps[step].items() if entry["random"] is not None}
        if len(drawn) == 1 and len(next(iter(drawn.values()))) > 1:
            return dict(enumerate(next(iter(drawn.values()))))
        return {rank: numbers[0] if len(numbers) == 1 else tuple(numbers) for rank, numbers in drawn.items()}


def shown(samples):
    """Samples as text, in ascending order."""
    return " ".join(map(str, sorted(samples))) or "none"


def _grouped(values, what):
    """Values of samples as text: 1/6 of the rate for 6 7 8, 1/2 for 9."""
    groups = {}
    for sample, value in sorted(values.items()):
        groups.setdefault(value, []).append(sample)
    texts = [f"{value.limit_denominator(9999)} for {shown(samples)}" for value, samples in groups.items()]
    return ", ".join(texts).replace(" for", f" of {what} for", 1) or "nothing"


def place_of(case, plan, step):
    """Words for a step."""
    at = plan[step]
    phase = case.phases[at.phase]
    begun = step > 0 and plan[step - 1].phase != at.phase
    words = ", the first after an interruption" if begun else ""
    return f"step {step} (epoch {at.epoch}{words}) on {counted_as(phase.world_size, 'rank')}"


class Epochs:
    """The samples that are left of each epoch, and the checks that they are counted once and in full batches."""

    def __init__(self, case, plan, tried):
        self.case, self.plan, self.tried = case, plan, tried
        self.left, self.epoch = set(range(case.samples)), 0

    def take(self, step, counted, explain):
        """Counts the samples of a step. `explain` is an _explainer()."""
        at, case, place = self.plan[step], self.case, place_of(self.case, self.plan, step)
        if at.epoch != self.epoch:
            self.left, self.epoch = set(range(case.samples)), at.epoch
        self.tried |= {"every-sample-once", "batch-kept"}
        again = {sample for sample, times in counted.items() if times > 1 or sample not in self.left}
        if again:
            left = self.left - set(counted)
            lost = f", while {shown(left)} were not" if left else ""
            fail("every-sample-once", case, place,
                 f"{counted_as(at.size, 'sample')} that epoch {at.epoch} has not counted: of {shown(self.left)}",
                 f"{shown(again)} counted again{lost}", unclear=explain(step))
        if sum(counted.values()) != at.size:
            fail("batch-kept", case, place, counted_as(at.size, "sample"), f"{sum(counted.values())}: {shown(counted)}",
                 unclear=explain(step))
        self.left -= set(counted)


def _explanations(reference, run, plan, step):
    """Why a step after an interruption has other samples than the reference: checks, what was expected and what came."""
    at, samples, found = plan[step], run[step], []
    if reference is None or at.phase == 0 or step >= len(reference) or samples == reference[step]:
        return found
    if plan[step - 1].phase != at.phase:
        found += [("loader-in-step", f"the samples of step {step}: {shown(reference[step])}",
                   f"those of step {other}: {shown(samples)}; the loader is a step {words} the weights")
                  for other, words in ((step + 1, "ahead of"), (step - 1, "behind"))
                  if other < len(reference) and plan[other].size == at.size and samples == reference[other]]
    starts = {}
    for index, other in enumerate(plan):
        starts.setdefault(other.epoch, index)
    for epoch, start in starts.items():
        other = start + step - starts[at.epoch]
        if epoch != at.epoch and other < len(reference) and plan[other][1:3] == (epoch, at.size) and samples == reference[other]:
            found.append(("epoch-number", f"the order of epoch {at.epoch}: {shown(reference[step])}",
                          f"that of epoch {epoch}: {shown(samples)}"))
    return found


def _explainer(case, plan, run, reference):
    """A function of a step that raises the violation that explains its samples, if one does, and returns whether several do."""
    def explain(step):
        found = _explanations(reference, run, plan, step)
        if len({check for check, _, _ in found}) == 1:
            fail(found[0][0], case, place_of(case, plan, step), *found[0][1:])
        return bool(found)

    return explain


def _without_left_over(run, plan, step, rate):
    """The samples of a step that would have equal weights if it did not add gradients of earlier steps again; None if that does
    not explain its weights."""
    values, at, tokens = run.values[step], plan[step], run.case.tokens or (1,) * run.case.samples
    earlier = {sample for counted, other in zip(run.counted[:step], plan) if other.epoch == at.epoch for sample in counted}
    rests = [[0 if sample in earlier else value for sample, value in enumerate(values)]]
    before = run.values[step - 1] if step > 0 else []
    # At the border of two epochs, samples of this step may be those of the one before.
    rests += [[value - scale * old for value, old in zip(values, before)]
              for scale in dict.fromkeys((value - own) / old for own in (0, rate / Fraction(at.size)) for value, old in zip(values, before)
                                         if value and old)]
    for rest in rests:
        own = {sample: value for sample, value in enumerate(rest) if value}
        total = sum(tokens[sample] for sample in own)
        if len(own) == at.size and all(value * total == rate * tokens[sample] for sample, value in own.items()):
            return own
    return None


def _weights_of_step(run, plan, step, only_resumed):
    """Counts of the samples of a step, after the checks of their weights and of the rate. `only_resumed` says that the run
    without interruptions has passed them, and that this step differs from it by an interruption alone."""
    case, at, values = run.case, plan[step], run.values[step]
    phase, place = case.phases[at.phase], place_of(case, plan, step)

    def fail_weights(check, *texts, unclear=False):
        fail("resume-equal" if only_resumed else check, case, place, *texts, unclear=unclear)

    seen = {sample: value for sample, value in enumerate(values) if value}
    if not seen:
        fail_weights("every-step", counted_as(at.size, "sample"), "no change of the weights")
    tokens = case.tokens or (1,) * case.samples
    total = sum(tokens[sample] for sample in seen)
    # For a short batch, rules may take its own size or that of a full one. A step of the wrong samples is found by its samples.
    rates = [case.rate(at.position, size) for size in dict.fromkeys((at.size, phase.batch, len(seen)))]
    for rate in rates:
        if all(value * total == rate * tokens[sample] for sample, value in seen.items()):
            return run.counted[step]
        # Samples that counted twice in the step, with the weights of full samples.
        times = {sample: value * at.size / rate for sample, value in seen.items()}
        if not case.tokens and sum(times.values()) == at.size and all(time.denominator == 1 and time > 0 for time in times.values()):
            return Counter({sample: int(time) for sample, time in times.items()})
    expected = _grouped({sample: Fraction(tokens[sample], total) for sample in seen}, "the rate")

    def shares(rate):
        return _grouped({sample: value / rate for sample, value in seen.items()}, "the rate")

    factors = {value * total / tokens[sample] for sample, value in seen.items()}
    rests = {rate: rest for rate in rates if (rest := _without_left_over(run, plan, step, rate))}
    # Where both steps have the same samples, any factor would be explained.
    same = bool(rests) and len(factors) == 1 and len(seen) == at.size
    if rests and not same:
        rate, own = next(iter(rests.items()))
        fail_weights("every-sample-once", _grouped({sample: value / rate for sample, value in own.items()}, "the rate"),
                     f"{shares(rate)}: gradients of an earlier step again, as of a velocity that is left over")
    if len(factors) > 1:
        name = "tokens" if case.tokens else "last-batch" if at.size < phase.batch else "uneven-shares"
        whole = next((rate for rate in rates if sum(seen.values()) == rate), None)
        # What several earlier steps have left over is not told apart from shares that do not add up to one.
        fail_weights(name, expected, shares(whole or rates[0]), unclear=step > 0 and whole is None)
    effective = factors.pop()
    for rate in rates:
        factor = effective / rate
        if at.size < phase.batch and factor == Fraction(at.size, phase.batch):
            fail_weights("last-batch", expected, f"{shares(rate)}, as in a full batch of {phase.batch}")
        # Ranks with samples, if these are dealt out in minibatches or one by one.
        busy = {-(-at.size // phase.minibatch), min(at.size, phase.world_size)} - {phase.world_size}
        if factor * phase.world_size in busy:
            fail_weights("last-batch" if at.size < phase.batch else "uneven-shares", expected,
                         f"{shares(rate)}, as of a mean over all ranks, also those without samples")
        if factor != 1 and factor in (phase.world_size, at.size, phase.world_size * at.size, phase.batch, len(seen)):
            what = "ranks" if factor == phase.world_size else "samples"
            fail_weights("mean-not-sum", expected, f"{shares(rate)}: {factor} times as much, as of a sum over {what}", unclear=same)
    padded = phase.minibatch * phase.world_size
    # Batches of this case first, then any of four ranks.
    sizes = dict.fromkeys([*sorted({other.batch for other in case.phases} | {other.size for other in plan}), padded, *range(1, 65)])
    stale = next((size for size in sizes if effective == case.rate(at.position, size)), None)
    if stale is not None:
        words = ", the minibatch times the ranks" if stale == padded else ", that of one rank" if stale == phase.minibatch else ""
        fail("rate-after-resize", case, place, f"the rate of a batch of {at.size}", f"that of a batch of {stale}{words}")
    positions = [position for position in range(200) for size in {at.size, phase.batch} if effective == case.rate(position, size)]
    if positions:
        fail("schedule-place", case, place, f"the rate of place {at.position} (in {case.schedule})", f"that of place {positions[0]}")
    if any(effective == case.rate(position, size) for position in range(200) for size in sizes):
        fail("rate-after-resize", case, place, f"the rate of a batch of {at.size} at place {at.position} (in {case.schedule})",
             "that of another batch size at another place")
    fail_weights("mean-not-sum", expected, shares(rates[0]), unclear=same)


def judge_samples(case, plan, counted, reference, tried):
    """Checks the samples of each step, as Counters; `reference` has those of a run without interruptions, or is None."""
    epochs = Epochs(case, plan, tried)
    explain = _explainer(case, plan, counted, reference)
    for step, samples in enumerate(counted):
        epochs.take(step, samples, explain)


def judge(run, reference, tried, resumed=False):
    """Checks a run by its weights. `reference` is the run on one rank, or None; `resumed` says that the run without
    interruptions has passed."""
    case, plan = run.case, run.case.plan()
    if run.numbers != list(range(len(plan))):
        fail("every-step", case, "the whole run", counted_as(len(plan), "step"),
             f"record() after the steps {shown(run.numbers)}")
    tried |= {"every-step", "mean-not-sum", "schedule-place"}
    epochs = Epochs(case, plan, tried)
    explain = _explainer(case, plan, run.counted, reference and reference.counted)
    drawn, mean = {}, [Fraction(0)] * case.samples
    for step, at in enumerate(plan):
        phase, place = case.phases[at.phase], place_of(case, plan, step)
        begun = at.phase > 0 and plan[step - 1].phase != at.phase
        same = begun and case.phases[at.phase - 1]._replace(steps=phase.steps) == phase
        tried |= {name for name, applies in (("uneven-shares", at.size % phase.world_size and at.size > phase.world_size),
                                             ("last-batch", at.size < phase.batch), ("tokens", len(set(case.tokens)) > 1),
                                             ("rate-after-resize", at.phase and phase.batch != case.phases[at.phase - 1].batch),
                                             ("loader-in-step", begun),
                                             ("epoch-number", at.phase and at.epoch)) if applies}
        counted = _weights_of_step(run, plan, step, resumed and same)
        epochs.take(step, counted, explain)
        replicas = {rank: entry["weights"] for rank, entry in run.steps[step].items()}
        if len(replicas) > 1:
            tried.add("same-replicas")
            first = min(replicas)
            for rank, weights in replicas.items():
                if weights != replicas[first]:
                    fail("same-replicas", case, place, f"the weights of rank {first} on all: {replicas[first]}",
                         f"on rank {rank} {weights}")
        _check_random(case, run.random(step), drawn, place, tried)
        if run.buffers(step) is not None:
            tried.add("buffers")
            found = [Fraction(number) for number in run.buffers(step)]
            parts = {sample: (2 * new - old) / UNIT for sample, (new, old) in enumerate(zip(found, mean)) if 2 * new != old}
            mean, expected = found, {sample: Fraction(1, at.size) for sample in counted}
            if parts != expected:
                fail("buffers", case, place, _grouped(expected, "the mean"), _grouped(parts, "the mean"))


def _check_random(case, numbers, drawn, place, tried):
    """Adds the random numbers of a step to those drawn before."""
    if not numbers:
        return
    tried.add("random-numbers")
    for rank, number in sorted(numbers.items()):
        if number in drawn:
            fail("random-numbers", case, place, f"a number on rank {rank} that has not been drawn before",
                 f"{number}, as {drawn[number]}")
        drawn[number] = f"rank {rank} in {place}"


def judge_order(case, counted, single):
    """Checks that each step counted the same samples as that on one rank."""
    plan = case.plan()
    explain = _explainer(case, plan, counted, single)
    for step, (samples, other) in enumerate(zip(counted, single)):
        if samples != other:
            fail("same-order", case, place_of(case, plan, step), f"the samples of one rank: {shown(other)}", shown(samples),
                 unclear=explain(step))


def judge_resume(run, unbroken):
    """Checks that a run equals the one without interruptions, bit by bit."""
    case, plan = run.case, run.case.plan()
    explain = _explainer(case, plan, run.counted, unbroken.counted)
    for step in range(len(plan)):
        place = place_of(case, plan, step)
        if run.weights[step] != unbroken.weights[step]:
            fail("resume-equal", case, place,
                 f"the weights without an interruption, from the samples {shown(unbroken.counted[step])}",
                 f"others, from the samples {shown(run.counted[step])}", unclear=explain(step))
        for what, name in ((run.buffers, "buffers"), (run.random, "random-numbers")):
            other = getattr(unbroken, what.__name__)(step)
            if what(step) != other:
                fail(name, case, place, f"without an interruption, {other}", f"{what(step)}")
