"""check_sampler(), check_loop() and check_resume(): the search for the smallest case in which a check fails."""

import importlib
import os
import textwrap
import traceback

from . import _judge
from ._cases import Case, counted_as
from ._checks import CHECKS, Violation, checked_waivers, checks_of, fail
from ._job import Job
from ._ranks import Stuck

#: Set by the pytest plug-in: a trace whose parts are tried, and the number of cases.
DEFAULTS = {"trace": None, "cases": None}


class NonConforming(AssertionError):
    """Raised by check_sampler(), check_loop() and check_resume() with a text that fits a screen; `report` is the Report."""

    def __init__(self, report):
        super().__init__(f"\n{report}")
        self.report = report


class Report:
    """What was checked.

    name, level: str
        what was checked: a sampler, a loop or a process
    cases: int
        that were tried
    violations: list of Violation
        the smallest case of each check that fails, that which is nearest to a cause first
    passed, waived, untried: list, dict of reasons, list
        the names of the other checks; those untried did not apply to any case
    """

    def __init__(self, name, level, cases, violations, tried, waived, again):
        self.name, self.level, self.cases, self.violations = name, level, cases, violations
        failed = {violation.check for violation in violations}
        self.waived = {check: reason for check, reason in waived.items() if check in checks_of(level)}
        self.passed = [check for check in checks_of(level) if check in tried and check not in failed and check not in self.waived]
        self.untried = [check for check in checks_of(level) if check not in failed | set(self.waived) | set(self.passed)]
        self._again = again

    def __str__(self):
        def listed(word, texts):
            return _wrapped(f"{word:11}{', '.join(texts)}") if texts else []

        failed = len(self.violations)
        found = "no check failed" if failed == 0 else "1 check failed" if failed == 1 else f"{failed} checks failed"
        lines = [f"rubato.conformance: {self.name}, as a {self.level}: {counted_as(self.cases, 'case')}, {found}"]
        for violation in self.violations[:1]:
            lines += ["", f"FAILED {violation.check}: {CHECKS[violation.check].demand}"]
            for word, text in (("case", violation.case.in_words()), ("at", violation.place), ("expected", violation.expected),
                               ("got", violation.got), ("why", CHECKS[violation.check].why), ("again", self._again(violation.case))):
                lines += _wrapped(f"  {word:9}{text}")
        if failed > 1:
            lines += ["", "also failed, perhaps for the same reason:"]
            lines += [f"  {violation.check:18}case {violation.case}, {violation.place}" for violation in self.violations[1:]]
        lines += [""] * bool(failed) + listed("passed", self.passed)
        lines += listed("waived", [f"{check} ({why})" for check, why in self.waived.items()])
        return "\n".join(lines + listed("not tried", self.untried))


def _wrapped(text):
    """The lines of a paragraph whose first eleven columns have its title."""
    return textwrap.wrap(text, 118, subsequent_indent=" " * 11, break_long_words=False, break_on_hyphens=False)


def _name_of(target):
    """The name by which a shell finds the target, as MODULE:NAME, and its module; or only the name that its author knows."""
    if isinstance(target, list):
        return " ".join(target), None
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if not module or not name:
        return type(target).__name__, None
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (f"{module}:{name}", module) if found is target else (name, None)


class Search:
    """Tries cases on a target."""

    def __init__(self, target, level, waive, claims):
        self.target, self.level, self.claims = target, level, claims
        self.waive = checked_waivers(waive)
        self.tried = {"runs", "repeatable"}
        self.cases = 0

    def attempt(self, case, run):
        """Runs a case; what the code under test raises becomes a violation."""
        try:
            return run()
        except Violation:
            raise
        except Stuck as stuck:
            fail("equal-steps", case, "the whole run", "ranks that enter the same collectives", str(stuck), stuck)
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            fail("runs", case, "the whole run", "no exception",
                 f"{type(error).__name__}: {error} ({os.path.basename(at.filename)}, line {at.lineno}: {at.line})", error)

    def again(self, case):
        """The line that runs a case again."""
        claims = {name: value for name, value in self.claims.items() if value not in (None, False)}
        name, module = _name_of(self.target)
        if self.level == "process" or module in (None, "__main__"):
            words = "".join(f", {word}={value!r}" for word, value in claims.items())
            checker = {"sampler": "check_sampler", "loop": "check_loop", "process": "check_resume"}[self.level]
            return f"{checker}({name if self.level != 'process' else repr(self.target)}, case=\"{case}\"{words})"
        words = "".join(f" --{word}" + ("" if value is True else f"={value}") for word, value in claims.items())
        return f"rubato conform {name} --case={case}{words}"

    def check(self, strategy, cases, seed, case):
        """Tries one case, or `cases` of a strategy. Raises NonConforming with the smallest cases, or returns the Report."""
        violations = self._tried(case) if case else self._searched(strategy, cases, seed)
        # One case for each check; the first that was found has been shrunk.
        violations = list({violation.check: violation for violation in reversed(violations)}.values())
        # The first is printed in full: the nearest to a cause, which needs no interruption, or else no resize.
        violations.sort(key=lambda found: (len(found.case.phases) > 1, len({phase.world_size for phase in found.case.phases}),
                                           list(CHECKS).index(found.check)))
        report = Report(_name_of(self.target)[0], self.level, self.cases, violations, self.tried, self.waive, self.again)
        if violations:
            raise NonConforming(report)
        return report

    def _one(self, case):
        self.cases += 1
        try:
            self.try_case(case)
        except Violation as violation:
            # A waived violation ends its case, as what follows from it would be found next.
            if violation.check not in self.waive:
                raise

    def _tried(self, case):
        try:
            self._one(case)
        except Violation as violation:
            return [violation]
        return []

    def _searched(self, strategy, cases, seed):
        import hypothesis
        from hypothesis import HealthCheck, Phase, given, settings

        latest, unclear = [], []

        @settings(max_examples=cases, deadline=None, database=None, derandomize=seed is None, print_blob=False,
                  report_multiple_bugs=True, verbosity=hypothesis.Verbosity.quiet, suppress_health_check=list(HealthCheck),
                  phases=(Phase.generate, Phase.shrink))
        @given(strategy)
        def run(case):
            try:
                self._one(case)
            except Violation as violation:
                if violation.unclear:
                    unclear.append(violation)
                    hypothesis.reject()
                latest.append(violation)
                raise

        try:
            (run if seed is None else hypothesis.seed(seed)(run))()
        except Exception as error:
            # Several causes come as a group of exceptions.
            errors = getattr(error, "exceptions", [error])
            flaky = isinstance(error, hypothesis.errors.Flaky) or any(isinstance(one, hypothesis.errors.Flaky) for one in errors)
            if not flaky and not all(isinstance(one, Violation) for one in errors):
                raise
            return [self.unrepeatable(latest[-1])] if flaky else list(errors)
        # Hypothesis has not tried these again.
        return [found if any(again.check == found.check for again in self._tried(found.case)) else self.unrepeatable(found)
                for found in unclear[:1]]

    @staticmethod
    def unrepeatable(found):
        """The violation of code under test that made another one come and go."""
        try:
            fail("repeatable", found.case, found.place, "the same result for the same case",
                 f"one in which {found.check} fails, and another one")
        except Violation as violation:
            return violation


class TrainingSearch(Search):
    """Tries cases on what trains: run(case) returns a judge's Run."""

    def try_case(self, case):
        run, unbroken, single = self.run(case), None, None
        if "same-order" not in self.waive and case.on_one_rank() != case:
            single = self.run(case.on_one_rank())
            self.tried.add("same-order")
        if case.unbroken() != case:
            unbroken = self.run(case.unbroken())
            self.tried.add("resume-equal")
            _judge.judge(unbroken, single, self.tried)
        _judge.judge(run, single, self.tried, unbroken is not None)
        if unbroken:
            _judge.judge_resume(run, unbroken)
        if single:
            _judge.judge(single, None, self.tried)
            _judge.judge_order(case, run.counted, single.counted)


class LoopSearch(TrainingSearch):
    reads_tokens = False

    def run(self, case):
        def train():
            job, state = Job(case), None
            for phase in case.phases:
                job.begin()
                state = self.target(job, phase, state)
            self.reads_tokens = job.reads_tokens
            # Emulated ranks have nothing to wait for.
            self.tried |= {"equal-steps"} if getattr(self.target, "has_ranks", False) else set()
            return _judge.Run(case, job.entries)

        return self.attempt(case, train)


def _check(search, cases, seed, case, trace, flat=False, **drawn):
    """Searches with a strategy of `drawn`, and of cases with tokens for a loop that reads them."""
    claims = {"last": drawn["last"], "schedule": drawn["schedule"], "flat": flat}
    if case is not None:
        return search.check(None, 1, None, Case.parse(str(case), **claims))
    # Learns what the code under test can do; what it raises is found below.
    try:
        search.run(Case.parse("2:1x1@1,1x1@1", **claims))
    except Violation:
        pass
    from . import strategies

    drawn |= {"flat": flat, "trace": trace or DEFAULTS["trace"]}
    strategy = strategies.cases(**drawn)
    if search.level == "loop" and search.reads_tokens:
        strategy = strategy | strategies.cases(**drawn, tokens=True)
    return search.check(strategy, DEFAULTS["cases"] or cases, seed, None)


def check_sampler(sampler, *, last="short", batch="any", divisible=False, ranks=4, waive=None, cases=200, case=None, trace=None,
                  seed=None):
    """Checks which samples a sampler gives to which step.

    sampler:
        a function that makes the sampler of one rank in one epoch: anything that can be iterated over, once. Of the keyword
        arguments samples, world_size, rank, epoch, batch (of all ranks), minibatch (of this one, rounded up), state and seed it is
        given those that it has. The sampler yields for each step a list of the samples of its rank, or single samples, of which
        `minibatch` are a step. If it has state_dict(), that of rank 0 is the `state` with which a later sampler continues.

    The other arguments are those of check_loop().
    """
    __tracebackhide__ = True
    from ._samplers import SamplerSearch

    search = SamplerSearch(sampler, "sampler", waive, {"last": last if last != "short" else None})
    return _check(search, cases, seed, case, trace, last=last, schedule="steps", batch=batch, divisible=divisible, ranks=ranks)


def check_loop(train, *, last="short", schedule="steps", batch="any", divisible=False, ranks=4, flat=False, waive=None, cases=200,
               case=None, trace=None, seed=None, interrupted=False):
    """Checks which samples a training loop counts in which step, with which weight and at which rate.

    train:
        train(job, phase, state) trains the model of the Job for phase.steps steps of phase.batch samples on phase.world_size ranks,
        from the state that an earlier call returned, or from the start if it is None; calls job.record() after each step; and
        returns the state with which a later call continues.
    last:
        "short" if the last batch of an epoch has the samples that are left, "drop" if they are dropped
    schedule:
        what the schedule of rates counts: "steps", "samples" or "epochs"
    batch:
        "fixed" for a batch that does not depend on the ranks, "per-rank" for a minibatch that does not; "any" tries both
    divisible:
        only batches, also last ones of an epoch, that all ranks share equally
    ranks:
        the most ranks of a case
    flat:
        rates of one, for formats with few digits, such as bfloat16
    waive:
        a dictionary of the checks that need not pass, each with a reason
    cases, seed:
        the number of cases, and a number that draws others; without one, they are the same in every call
    case:
        the text of one case to be tried instead, as a report prints it
    trace:
        a list of (ranks, steps), as read_trace() returns it, whose parts are tried
    interrupted:
        only cases with an interruption

    Returns a Report. Raises NonConforming, an AssertionError, with the smallest case of each check that fails.
    """
    __tracebackhide__ = True
    claims = {"last": last if last != "short" else None, "schedule": schedule if schedule != "steps" else None, "flat": flat}
    search = LoopSearch(train, "loop", waive, claims)
    return _check(search, cases, seed, case, trace, last=last, schedule=schedule, batch=batch, divisible=divisible, ranks=ranks,
                  flat=flat, interrupted=interrupted)


def check_resume(target, **options):
    """Checks that an interrupted training equals one that was not interrupted.

    target:
        a loop as of check_loop(), which is checked with cases that all have an interruption; or a command, as a list of
        arguments, that trains current_job() on as many processes as "{processes}" in it says, such as ["torchrun",
        "--standalone", "--nproc-per-node={processes}", "train.py"]. The command is killed after a step, and started again.

    For a loop, the options are those of check_loop(). A command has `last`, `schedule`, `flat`, `waive`, `seed` and `case` of them,
    cases=6, ranks=2, and timeout=120, in seconds for one start.
    """
    __tracebackhide__ = True
    if callable(target):
        return check_loop(target, interrupted=True, **options)
    from ._processes import check_command

    return check_command(target, **options)
