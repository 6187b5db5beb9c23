"""rubato.conformance passes what is right and finds what is wrong: one mistake for each check, and eight that are known."""

import os
import subprocess
import sys
import time
import unittest
from fractions import Fraction

import numpy
from elastic_loop import ElasticLoop, RankLoop, order
from hypothesis import HealthCheck, given, settings
from known_mistakes import MISTAKES, EpochZeroAfterReset, LoaderAhead, RanksWeightedAlike, WindowCutAtEpochEnd, WorldSizeForgotten, padded
from rubato.conformance import Case, NonConforming, check_loop, check_resume, check_sampler, on_threads, read_trace, strategies
from rubato.conformance._cases import SIZES, UNIT
from rubato.conformance._checks import checks_of
from support import SOURCE, TestCase

# More of them are for developers.
CASES = int(os.environ.get("RUBATO_CONFORMANCE_CASES", 100))


def mistaken(kind, **methods):
    """A loop of that class, with other methods."""
    return type("Mistaken", (kind,), methods)()


class ElasticSampler:
    """A sampler that is right, on any number of ranks: the samples that are left, in batches that ranks share."""

    def __init__(self, samples, world_size, rank, epoch, batch, minibatch, state=None):
        self.samples, self.world_size, self.rank, self.batch, self.minibatch = samples, world_size, rank, batch, minibatch
        self.place, self.epoch = (state or {"place": 0})["place"], epoch

    def order(self):
        return order(self.samples, self.epoch, 1)

    def __iter__(self):
        while self.place < self.samples:
            indices = self.order()[self.place:self.place + self.batch]
            self.place += len(indices)
            yield indices[self.rank * self.minibatch:(self.rank + 1) * self.minibatch]

    def state_dict(self):
        return {"place": self.place}


class Right(TestCase):
    def test_a_loop(self):
        for last in ("short", "drop"):
            kind = ElasticLoop if last == "short" else DroppingLoop
            for schedule in ("steps", "samples", "epochs"):
                report = check_loop(mistaken(kind, rate=lambda self, state, size, unit=schedule: self.job.rate(
                    {"steps": state["step"], "samples": state["seen"], "epochs": state["epoch"]}[unit], size)),
                    last=last, schedule=schedule, cases=CASES)
                self.assertEqual(report.violations, [])
                self.assertEqual(set(report.untried), {"equal-steps", "tokens", "buffers", "random-numbers", "same-replicas"} |
                                 ({"last-batch"} if last == "drop" else set()))

    def test_ranks_as_threads(self):
        report = check_loop(on_threads(RankLoop()), cases=CASES)
        self.assertEqual(report.untried, [])
        self.assertTrue(check_resume(on_threads(RankLoop()), cases=CASES // 4).passed)

    def test_a_sampler(self):
        report = check_sampler(ElasticSampler, cases=CASES)
        self.assertEqual((report.untried, report.waived), ([], {}))

    def test_is_exact_in_every_order_and_format(self):
        for format in (numpy.float16, numpy.float32, numpy.float64):
            x, one = format(UNIT), format(1)
            for world in range(1, 5):
                for size in SIZES:
                    for share in [share for share in SIZES if share <= size]:
                        n, of, w = format(share), format(size), format(world)
                        for gradient in (x / of, x * (one / of), x / n * n / of, x / n * (n / of), x / n / w * (n * w / of), n * w / of / n * x / w,
                                         one / n * x / w * (n * w / of), x * (w / of) / w):
                            self.assertEqual(Fraction(float(gradient)), Fraction(UNIT, size), (format, world, size, share))

    def test_formats_with_few_digits(self):
        def rounded(self, shares, size):
            return ElasticLoop.gradient(self, shares, size).astype(numpy.float16)

        check_loop(mistaken(ElasticLoop, gradient=rounded), flat=True, cases=CASES)


class DroppingLoop(ElasticLoop):
    """The same, but that samples which fill no batch are dropped."""

    def batch(self, state):
        if state["place"] + self.phase.batch > self.job.samples:
            state |= {"epoch": state["epoch"] + 1, "place": 0}
        state["place"] += self.phase.batch
        return order(self.job.samples, state["epoch"], self.job.seed)[state["place"] - self.phase.batch:state["place"]]


def fewer_steps(self, job, phase, state):
    return ElasticLoop.__call__(self, job, phase._replace(steps=min(phase.steps, 2)), state)


def ended(self, job, phase, state):
    if phase.world_size == 3:
        raise RuntimeError("no third rank")
    return ElasticLoop.__call__(self, job, phase, state)


def impatient(job, phase, state, ranks):
    return RankLoop()(job, phase._replace(steps=phase.steps - (ranks.rank == 2)), state, ranks)


def by_sequence(self, job, share, ranks):
    tokens = job.tokens
    total = sum(tokens[index] for index in share)
    mean = sum((tokens[index] * job.inputs[index] for index in share), numpy.zeros(job.samples)) / max(total, 1)
    return ranks.all_reduce(mean * len(share)) / ranks.all_reduce(len(share))


def by_world(self, state):
    batch = ElasticLoop.batch(self, state)
    return [(index + self.phase.world_size) % self.job.samples for index in batch]


def by_chance(self, state, size, calls=[]):
    calls.append(1)
    return ElasticLoop.rate(self, state, size) * (2 if len(calls) == 97 else 1)


PLANTED = {
    "runs": mistaken(ElasticLoop, __call__=ended),
    "equal-steps": on_threads(impatient),
    "every-step": mistaken(ElasticLoop, __call__=fewer_steps),
    "loader-in-step": LoaderAhead(),
    "epoch-number": EpochZeroAfterReset(),
    "uneven-shares": RanksWeightedAlike(),
    "last-batch": WindowCutAtEpochEnd(),
    "mean-not-sum": mistaken(ElasticLoop, gradient=lambda self, shares, size: sum(self.mean(share) * len(share) for share in shares)),
    "tokens": on_threads(mistaken(RankLoop, gradient=by_sequence)),
    "every-sample-once": WorldSizeForgotten(),
    "batch-kept": mistaken(ElasticLoop, shares=lambda self, indices: [indices[:self.phase.minibatch]],
                           gradient=lambda self, shares, size: self.mean(shares[0])),
    "rate-after-resize": mistaken(ElasticLoop, rate=lambda self, state, size: self.job.rate(state["step"], state.setdefault(
        "batch", self.phase.batch))),
    "schedule-place": mistaken(ElasticLoop, resumed=lambda self, state: state | {"step": 0}),
    "same-order": mistaken(ElasticLoop, batch=by_world),
    "resume-equal": mistaken(ElasticLoop, resumed=lambda self, state: state | {"weights": [round(weight, -2) for weight in state["weights"]]}),
    "buffers": on_threads(mistaken(RankLoop, mean=lambda self, job, share, ranks: ranks.all_gather(job.inputs[share].sum(axis=0) / max(len(share), 1))[0])),
    "random-numbers": on_threads(mistaken(RankLoop, random=lambda self, step, rank: RankLoop.random(self, step, 0))),
    "same-replicas": on_threads(mistaken(RankLoop, resumed=lambda self, state, ranks: dict(state) | (
        {"weights": [0.0] * len(state["weights"])} if ranks.rank else {}))),
}


class SamplerOf(ElasticSampler):
    """A sampler with a mistake: `mistake` names the check that finds it."""

    mistake = None

    def __init__(self, samples, world_size, rank, epoch, batch, minibatch, state=None):
        super().__init__(samples, world_size, rank, epoch, batch, minibatch, state)
        self.resumed, self.begun = state is not None, self.place
        if self.mistake == "runs" and rank == 2:
            raise RuntimeError("no third rank")

    def order(self):
        if self.mistake == "epoch-number" and self.resumed:
            return order(self.samples, 0, 1)
        indices = order(self.samples, self.epoch + (self.world_size if self.mistake == "same-order" else 0), 1)
        if self.mistake == "resume-equal" and self.resumed:
            # Another order of what is left.
            indices[self.begun:] = reversed(indices[self.begun:])
        return indices

    def __iter__(self):
        for share in super().__iter__():
            if self.mistake == "equal-steps" and not share:
                return
            yield share + share[:1] if self.mistake == "every-sample-once" else share[:1] if self.mistake == "batch-kept" else share


class Finding(TestCase):
    """A test of what is found."""

    def found(self, check, target, **options):
        with self.assertRaises(NonConforming) as raised:
            check(target, **options)
        report = raised.exception.report
        self.assertLessEqual(len(str(report).splitlines()), 30)
        for violation in report.violations:
            self.assertLessEqual(len(violation.case.phases), 4)
        return {violation.check: violation.case for violation in report.violations}, str(report)


class Wrong(Finding):
    def test_each_check_of_loops_finds_its_mistake(self):
        self.assertEqual(set(PLANTED), set(checks_of("loop")) - {"repeatable"})
        for check, loop in PLANTED.items():
            with self.subTest(check):
                found, text = self.found(check_loop, loop)
                self.assertIn(check, found)
                # The case alone shows it, and a waiver hides it.
                again, _ = self.found(check_loop, loop, case=str(found[check]))
                self.assertEqual(again, {check: found[check]})
                report = check_loop(loop, case=str(found[check]), waive={check: "planted"})
                self.assertEqual([check in names for names in (report.waived, report.passed, report.untried)], [True, False, False])
                self.assertNotIn(check, str(report).partition("\nwaived")[0])

    def test_what_depends_on_chance(self):
        self.assertIn("repeatable", self.found(check_loop, mistaken(ElasticLoop, rate=by_chance))[0])

    def test_each_check_of_samplers_finds_its_mistake(self):
        for check in set(checks_of("sampler")) - {"repeatable"}:
            with self.subTest(check):
                self.assertIn(check, self.found(check_sampler, type("Mistaken", (SamplerOf,), {"mistake": check}))[0])

    def test_the_known_mistakes(self):
        begin = time.process_time()
        for mistake in MISTAKES:
            with self.subTest(mistake.name):
                found, _ = self.found(check_sampler if mistake.code is padded else check_loop, mistake.code, **mistake.claims)
                self.assertIn(mistake.check, found)
        self.assertLess(time.process_time() - begin, 60)

    def test_says_it_on_a_screen(self):
        _, text = self.found(check_loop, RanksWeightedAlike())
        self.assertEqual(text.splitlines()[2:8], [
            "FAILED uneven-shares: the samples of a step have equal weights, however many of them a rank has",
            "  case     3 samples; 2 ranks for 1 step of 3",
            "  at       step 0 (epoch 0) on 2 ranks",
            "  expected 1/3 of the rate for 0 1 2",
            "  got      1/4 of the rate for 0 2, 1/2 for 1",
            "  why      A mean of the ranks' means weights the samples of a small share more."])


class Velocity(ElasticLoop):
    """A velocity that the first step after a resize still has: half of the gradient before it."""

    def gradient(self, shares, size):
        gradient = ElasticLoop.gradient(self, shares, size)
        resized, self.resized = self.resized, False
        old, self.last = getattr(self, "last", None), (gradient, self.phase.world_size)
        return gradient + old[0] / 2 if resized and old[1] != self.phase.world_size else gradient

    def resumed(self, state):
        self.resized = state["step"] > 0
        return state


class Named(Finding):
    """What is named although it looks like another mistake."""

    def test_a_velocity_that_is_left_over(self):
        def uncleared(self, shares, size):
            # The gradient of the step before is never cleared.
            begun, old = self.job.entries, getattr(self, "last", None)
            self.last = ElasticLoop.gradient(self, shares, size)
            return self.last + old if begun and old is not None else self.last

        for loop in (Velocity(), mistaken(ElasticLoop, gradient=uncleared)):
            found, text = self.found(check_loop, loop)
            self.assertEqual(list(found), ["every-sample-once"], text)
            self.assertIn("gradients of an earlier step again, as of a velocity that is left over", " ".join(text.split()))

    def test_the_rate_of_another_batch(self):
        for size, words in ((lambda phase: phase.minibatch * phase.world_size, "the minibatch times the ranks"),
                            (lambda phase: phase.minibatch, "that of one rank"), (lambda phase: phase.batch + 3, "that of a batch of")):
            loop = mistaken(ElasticLoop, rate=lambda self, state, _, size=size: self.job.rate(state["step"], size(self.phase)))
            found, text = self.found(check_loop, loop)
            self.assertEqual(list(found), ["rate-after-resize"], text)
            self.assertIn(words, text)

    def test_random_numbers_that_repeat_in_later_steps(self):
        # Ranks differ in each step, and on one rank no resume is needed to see it.
        again = on_threads(mistaken(RankLoop, random=lambda self, step, rank: RankLoop.random(self, step % 2, rank)))
        found, text = self.found(check_loop, again)
        self.assertEqual(list(found), ["random-numbers"])
        self.assertEqual(str(found["random-numbers"]), "1:1x3@1")
        self.assertIn("as rank 0 in step 0", text)

    def test_a_short_batch_may_have_the_rate_of_a_full_one(self):
        full = mistaken(ElasticLoop, rate=lambda self, state, size: self.job.rate(state["step"], self.phase.batch))
        self.assertTrue(check_loop(full, cases=CASES).passed)


# A program with a checkpoint, whose ranks are emulated; {mistake} is a line before the checkpoint is written.
CODE = """
import json, sys
from elastic_loop import ElasticLoop
from rubato.conformance import Phase, current_job

job = current_job()
record, file = job.record, job.folder / "checkpoint.json"
job.record = lambda weights: None
state = json.loads(file.read_text()) if file.exists() else None
for step in range(state["step"] if state else 0, job.steps):
    state = ElasticLoop()(job, Phase(int(sys.argv[1]), 1, job.batch), state)
    saved = dict(state)
    {mistake}
    file.write_text(json.dumps(saved))
    record(state["weights"], step=step)
"""


class Programs(Finding):
    def program(self, mistake="pass"):
        file = self.folder() / "program.py"
        file.write_text(CODE.format(mistake=mistake))
        return [sys.executable, str(file), "{processes}"]

    def setUp(self):
        path = os.environ["PYTHONPATH"]
        self.addCleanup(os.environ.update, PYTHONPATH=path)
        os.environ["PYTHONPATH"] = f"{path}:{SOURCE / 'tests' / 'python'}"

    def test_a_right_one(self):
        report = check_resume(self.program(), cases=3, seed=4)
        self.assertLessEqual({"loader-in-step", "every-sample-once", "same-order"}, set(report.passed))

    def test_wrong_ones(self):
        for mistake, check in (("saved['weights'] = [0.0] * job.samples", "resume-equal"), ("saved['place'] += job.batch", "loader-in-step"),
                               ("raise SystemExit('disk full')", "runs")):
            with self.subTest(check):
                found, text = self.found(check_resume, self.program(mistake), case="8:1x1@2,1x2@2")
                self.assertEqual(list(found), [check], text)
                self.assertIn("check_resume(['", text)
        self.assertIn("disk full", text)

    def test_one_that_hangs(self):
        found, text = self.found(check_resume, self.program("import time; time.sleep(60)"), case="4:1x1@2", timeout=1)
        self.assertEqual(list(found), ["runs"])
        self.assertIn("has not ended after 1 s", text)


class Use(TestCase):
    def test_strategies(self):
        @settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(strategies.cases(divisible=True, batch="fixed", ranks=3, interrupted=True), strategies.kills(), strategies.world_sizes(2),
               strategies.dataset_sizes(5))
        def holds(case, kill, ranks, samples):
            self.assertEqual(len({phase.batch for phase in case.phases}), 1)
            self.assertGreater(len(case.phases), 1)
            self.assertTrue(all(phase.world_size <= 3 and phase.batch % phase.world_size == 0 for phase in case.phases))
            self.assertTrue(case.is_readable())
            self.assertEqual((len(kill), 1 <= ranks <= 2, 1 <= samples <= 5), (3, True, True))

        holds()

    def test_cases_are_texts(self):
        for text in ("10:2x3@6,1x1@6", "3:1x1@2:1.3.1"):
            self.assertEqual(str(Case.parse(text)), text)
        for text in ("10", "10:2x3", "0:1x1@1", "3:0x1@1", "5:1x1@5", "3:1x1@2:1.3"):
            with self.assertRaises(ValueError):
                Case.parse(text)

    def test_waivers_need_a_reason(self):
        for waive in ({"tokens": ""}, {"token": "none"}):
            with self.assertRaises(ValueError):
                check_loop(ElasticLoop(), waive=waive)

    def test_traces(self):
        file = self.folder() / "trace.csv"
        file.write_text("step,batchsize,cores\n0,64,2\n1,64,1+1\n2,32,1\n")
        self.assertEqual(read_trace(file), [(2, 2), (1, 1)])
        file.write_text("step,batchsize\n0,64\n1,32\n")
        self.assertEqual(read_trace(file), [(2, 1), (1, 1)])
        seen = []

        def watching(job, phase, state):
            seen.append(phase.world_size)
            return ElasticLoop()(job, phase, state)

        check_loop(watching, trace=[(2, 2)], cases=20, waive={"same-order": "it would run on one rank"})
        # The first case is there to learn what the loop can do.
        self.assertEqual(set(seen[2:]), {2})
        file.write_text("seconds\n")
        with self.assertRaises(ValueError):
            read_trace(file)

    def test_a_verdict_that_nobody_reads(self):
        def code_of(*arguments, stdout):
            return subprocess.run([sys.executable, "-m", "rubato.conformance", *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True,
                                  cwd=SOURCE / "tests" / "python")

        reader, closed = os.pipe()
        os.close(reader)
        with open(closed, "w") as closed, open("/dev/full", "w") as full:
            for out, why in ((closed, "Broken pipe"), (full, "No space left on device")):
                for arguments, code in ((("known_mistakes:padded",), 32), (("--list",), 24)):
                    with self.subTest(arguments, why=why):
                        done = code_of(*arguments, stdout=out)
                        self.assertEqual((done.returncode, done.stderr), (code, f"rubato conform: cannot write the output: {why}\n"))

    def test_needs_neither_torch_nor_the_core(self):
        code = "import sys; import rubato.conformance as c; c.check_sampler; print([n for n in ('torch', 'rubato._rubato') if n in sys.modules])"
        for path in (SOURCE / "src" / "clients" / "python", os.environ["PYTHONPATH"]):
            out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(path)})
            self.assertEqual(out.stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
