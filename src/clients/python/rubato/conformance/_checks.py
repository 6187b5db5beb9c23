"""The checks by name: what each one demands, and why that matters (docs/conformance.md)."""

from typing import NamedTuple


class Check(NamedTuple):
    """A property that elastic training is expected to have.

    levels:
        "s" if samplers are checked for it, "l" if loops are, "p" if programs are
    demand:
        what has to hold
    why:
        what goes wrong where it does not
    """

    levels: str
    demand: str
    why: str


CHECKS = {
    "runs": Check(
        "slp", "a case ends without an exception",
        "A resize that ends the training is no elastic training."),
    "equal-steps": Check(
        "slp", "all ranks do the same number of steps",
        "A rank that does one step more waits in its all-reduce for ever, unless it is joined (torch's Join)."),
    "every-step": Check(
        "lp", "the loop does as many steps as it is asked for, and each counts samples",
        "A step without samples, or one that is missing, shifts everything that is counted in steps."),
    "loader-in-step": Check(
        "lp", "a resume continues with the samples that follow the weights of its checkpoint",
        "A loader that reads ahead saves a place that the weights have not reached: a step is lost at every restart."),
    "epoch-number": Check(
        "slp", "the order of an epoch does not depend on a resume in between",
        "A resumed epoch in the order of another one repeats samples and loses others."),
    "every-sample-once": Check(
        "slp", "an epoch counts every sample once",
        "Samples that are lost or doubled at a resize or by padding bias the model and every test result, silently."),
    "batch-kept": Check(
        "slp", "a step counts as many samples as the batch says",
        "The rate belongs to a batch size; another one trains with a wrong rate."),
    "uneven-shares": Check(
        "lp", "the samples of a step have equal weights, however many of them a rank has",
        "A mean of the ranks' means weights the samples of a small share more."),
    "last-batch": Check(
        "lp", "the samples of a short last batch have equal weights, which add up to one",
        "A short batch that is divided by the size of a full one, or by ranks, trains with another rate."),
    "mean-not-sum": Check(
        "lp", "gradients are averaged over the samples of a step",
        "A sum over replicas or samples multiplies the rate by their number, which changes with the world size."),
    "tokens": Check(
        "lp", "samples count in proportion to their tokens",
        "A mean of means over sequences weights the tokens of short sequences more."),
    "rate-after-resize": Check(
        "lp", "a step has the rate of its own batch size",
        "A rate that is scaled once, at the start, is wrong from the first resize on."),
    "schedule-place": Check(
        "lp", "a step has the rate of its place in the schedule",
        "A schedule that counts the wrong thing (steps instead of samples, steps since the restart) decays too early "
        "or too late."),
    "same-order": Check(
        "slp", "a step counts the same samples on any number of ranks",
        "Without it, no elastic run can be compared with another one."),
    "resume-equal": Check(
        "slp", "a run that was interrupted equals one that was not, bit by bit",
        "Whatever a checkpoint forgets changes the training at every interruption."),
    "buffers": Check(
        "lp", "running statistics include the samples of all ranks",
        "Statistics of one rank's share change with the number of ranks."),
    "random-numbers": Check(
        "lp", "ranks draw different random numbers, and none of them again after a resume",
        "Equal seeds give all ranks the same dropout and augmentation; a generator that is not saved repeats them."),
    "same-replicas": Check(
        "lp", "all ranks have the same weights",
        "Replicas that differ once never agree again."),
    "repeatable": Check(
        "slp", "the same case gives the same result again",
        "What depends on chance or on earlier cases cannot be resumed or debugged."),
}


def checks_of(level):
    """The names of the checks of a level ("sampler", "loop", "process")."""
    return [name for name, check in CHECKS.items() if level[0] in check.levels]


class Violation(AssertionError):
    """A case in which a check fails; each check has a class of its own, by which Hypothesis tells causes apart.

    check, case, place, expected, got:
        the name of the check, the Case, where in it, and what was expected there and what came
    unclear: bool
        more than one mistake would explain the case, which is too small to tell them apart
    """

    unclear = False

    def __init__(self, check, case, place, expected, got):
        super().__init__(f"{check} fails for {case}, {place}: expected {expected}; got {got}")
        self.check, self.case, self.place, self.expected, self.got = check, case, place, expected, got


_KINDS = {name: type(f"Violation[{name}]", (Violation,), {}) for name in CHECKS}


def fail(check, case, place, expected, got, cause=None, unclear=False):
    """Raises the violation of a check."""
    violation = _KINDS[check](check, case, place, expected, got)
    violation.unclear = unclear
    # Hypothesis takes exceptions of one type from one line for one cause, so all are raised here.
    raise violation from cause


def checked_waivers(waive):
    """Waivers as a dictionary of reasons by check. Raises ValueError for an unknown check and for one without a reason."""
    waive = dict(waive or {})
    for name, reason in waive.items():
        if name not in CHECKS:
            raise ValueError(f"waive: there is no check '{name}'; accepted: {', '.join(CHECKS)}")
        if not str(reason).strip():
            raise ValueError(f"waive: '{name}' needs a reason")
    return waive
