"""What docs/conformance.md says of PyTorch and of the known mistakes, and what it shows; rubato itself conforms."""

import os
import re
import shutil
import subprocess
import sys
import unittest

# Before numpy and torch, as it chooses their kernels.
import rubato

import hypothesis
import numpy
import torch
from elastic_loop import ElasticLoop
from known_mistakes import MISTAKES, padded
from rubato.conformance import CHECKS, NonConforming, check_loop, check_sampler
from rubato.conformance.adapters import custom_sampler, data_loader, ddp, distributed_sampler
from support import PROGRAM, SOURCE, TestCase

# The version of the page's cases: that of Debian 12.
HYPOTHESIS = "6.67.1"
PAGE = SOURCE / "docs" / "conformance.md"
# Of rubato itself; more of them, and the example's program, are for developers.
LONG = "RUBATO_CONFORMANCE_CASES" in os.environ
CASES = int(os.environ.get("RUBATO_CONFORMANCE_CASES", 8))

# The part, in words what is claimed of it, and how it is checked.
PYTORCH = [
    ("`DistributedSampler()`", "", check_sampler, distributed_sampler(), {}),
    ("`DistributedSampler()`", "`divisible`", check_sampler, distributed_sampler(), {"divisible": True}),
    ("`DistributedSampler(drop_last=True)`", "`last=\"drop\"`", check_sampler, distributed_sampler(drop_last=True), {"last": "drop"}),
    ("`DataLoader(batch_size=minibatch)`", "`divisible`", check_sampler, data_loader(), {"divisible": True}),
    ("the tutorials' loop", "`divisible`, `batch=\"fixed\"`", check_loop, ddp(), {"divisible": True, "batch": "fixed", "ranks": 2, "cases": 8}),
    ("the tutorials' loop", "", check_loop, ddp(), {"case": "3:2x2@2"}),
    ("the tutorials' loop", "`batch=\"per-rank\"`", check_loop, ddp(), {"case": "4:1x2@1,2x1@2"}),
    ("the tutorials' loop, unpadded", "", check_loop, ddp(pad=False), {"case": "3:2x1@4"}),
    ("the tutorials' loop, unpadded, without Join", "", check_loop, ddp(pad=False, join=False, timeout=3), {"case": "1:2x1@2"}),
]


def violations(check, target, **options):
    """The smallest cases by check."""
    try:
        check(target, **options)
        return {}
    except NonConforming as found:
        return {violation.check: violation.case for violation in found.report.violations}


def rows_of_checks():
    words = dict(s="samplers", l="loops", p="programs")
    return [f"| `{name}` | {', '.join(words[level] for level in check.levels)} | {check.demand} | {check.why} |" for name, check in CHECKS.items()]


def rows_of_pytorch():
    rows = []
    for part, claims, check, target, options in PYTORCH:
        found = violations(check, target, **options)
        rows.append(f"| {part} | {claims} | {', '.join(f'`{name}`' for name in found) or 'all holds'} | "
                    f"{f'`{next(iter(found.values()))}`' if found else ''} |")
    return rows


def rows_of_mistakes():
    rows = []
    for mistake in MISTAKES:
        found = violations(check_sampler if mistake.code is padded else check_loop, mistake.code, **mistake.claims)
        # Other versions of Hypothesis shrink to other small cases.
        if hypothesis.__version__ != HYPOTHESIS:
            found = {check: re.search(rf"{re.escape(mistake.report)}.*`([^`]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[1]
                     for check in found}
        rows.append(f"| [{mistake.name}](https://{mistake.report}) | `{mistake.check}` | `{found[mistake.check]}` |")
    return rows


class Chapter(TestCase):
    def setUp(self):
        self.page = PAGE.read_text(encoding="utf-8")

    def test_tables(self):
        for head, rows in (("| check |", rows_of_checks()), ("| part |", rows_of_pytorch()), ("| mistake |", rows_of_mistakes())):
            before, table, after = re.fullmatch(rf"(.*\n{re.escape(head)}[^\n]*\n\|[-|]+\n)(.*?)(\n\n.*|\n)", self.page, re.DOTALL).groups()
            if os.environ.get("RUBATO_UPDATE_DOCS"):
                self.page = before + "\n".join(rows) + after
                PAGE.write_text(self.page, encoding="utf-8")
            else:
                self.assertEqual(table.splitlines(), rows, "RUBATO_UPDATE_DOCS=1 ctest -R python.ConformanceTorch")

    def conform(self, folder, *arguments):
        """What `rubato conform` prints, and its exit code."""
        done = subprocess.run([PROGRAM, "conform", *arguments], capture_output=True, text=True, cwd=folder,
                              env={**os.environ, "RUBATO_PYTHON": sys.executable})
        return done.stdout, done.returncode

    def test_commands(self):
        folder = self.folder()
        for name, code in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", self.page, re.MULTILINE | re.DOTALL):
            (folder / name).write_text(code)
        blocks = re.findall(r"^```\n\$ rubato conform (.*?)\n(.*?)^```$", self.page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 2)
        for command, shown in blocks:
            found, code = self.conform(folder, *command.split())
            self.assertEqual(code, 32, found)
            if os.environ.get("RUBATO_UPDATE_DOCS"):
                self.page = self.page.replace(shown, found)
                PAGE.write_text(self.page, encoding="utf-8")
            else:
                # Versions of Hypothesis try other cases on their way to the same smallest one.
                self.assertEqual(*(re.search(r"^FAILED.*?\n\n", text, re.MULTILINE | re.DOTALL)[0] for text in (found, shown)))
        # The line that a report gives, and the loop once it is repaired as the page says.
        again = re.search(r"^  again +rubato conform (.*)$", self.page, re.MULTILINE)[1]
        self.assertIn("1 case, 1 check failed", self.conform(folder, *again.split())[0])
        loop = (folder / "my_loop.py").read_text().replace("mean(axis=0)", "mean(axis=0) * len(share) / len(batch)").replace(
            "sum(gradients) / len(gradients)", "sum(gradients)")
        (folder / "my_loop.py").write_text(loop)
        found, code = self.conform(folder, "my_loop:train", "--cases=100", "--waive=same-order=it is not needed here")
        self.assertEqual(code, 0, found)
        self.assertIn("\nwaived     same-order (it is not needed here)\n", found)
        self.assertEqual(self.conform(folder, "my_loop:missing"), ("", 2))
        self.assertEqual(self.conform(folder, "my_loop:train", "--waive=same-order"), ("", 2))
        self.assertEqual(len(self.conform(folder, "--list")[0].splitlines()), len(CHECKS))

    def test_the_example(self):
        folder = self.folder() / "example"
        shutil.copytree(SOURCE / "examples" / "conformance", folder)

        def tests(*arguments):
            return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "rubato_pytest", *arguments],
                                  capture_output=True, text=True, cwd=folder, timeout=600)

        # Its program, which torchrun starts a dozen times, takes half a minute.
        done = tests("--rubato-traces=spot.csv", *([] if LONG else ["--rubato-cases=10", "-k", "not program"]))
        self.assertIn("3 passed" if LONG else "2 passed", done.stdout, done.stderr)
        # A planted mistake is a report, and not a traceback.
        (folder / "elastic.py").write_text((folder / "elastic.py").read_text().replace("parameter.grad /= total", "parameter.grad /= batch"))
        done = tests("-k", "loop", "--rubato-cases=15")
        self.assertIn("FAILED last-batch", done.stdout)
        self.assertNotIn("Traceback", done.stdout)
        self.assertNotIn("hypothesis", done.stdout)
        self.assertIn("--rubato-traces: ", tests("--rubato-traces=nothing.csv").stderr)


class LoopOfFormat(ElasticLoop):
    """The loop that is right, with the weights and gradients of a format of torch."""

    kind = torch.float32

    def __call__(self, job, phase, state):
        self.job, self.phase = job, phase
        state = dict(state or {"weights": torch.zeros(job.samples, dtype=self.kind), "step": 0, "epoch": 0, "place": 0, "seen": 0})
        inputs = torch.tensor(job.inputs, dtype=self.kind)
        for _ in range(phase.steps):
            indices = self.batch(state)
            gradient = sum(inputs[share].mean(0) * len(share) for share in self.shares(indices) if share) / len(indices)
            state["weights"] = state["weights"] + self.rate(state, len(indices)) * gradient
            state["step"] += 1
            job.record(state["weights"])
        return state


class Formats(TestCase):
    def test_few_digits_suffice_for_flat_rates(self):
        for kind in (torch.bfloat16, torch.float16, torch.float32):
            loop = LoopOfFormat()
            loop.kind = kind
            self.assertEqual(violations(check_loop, loop, flat=kind != torch.float32), {})


class Planned:
    """rubato's own sampler, by rubato.plan(): positions in the order of an epoch."""

    def __init__(self, samples, world_size, rank, batch, state):
        self.done, self.step, self.rank = list(state or []), (batch, world_size), rank
        self.epoch = rubato.plan(self.done + [self.step] * (samples // batch + 1), dataset_size=samples, epochs=1, minibatch=1)[0]

    def __iter__(self):
        for row in range(len(self.done), self.epoch.steps.rows):
            self.done.append(self.step)
            yield self.epoch.shares(row)[self.rank]

    def state_dict(self):
        return self.done


class Rates:
    """A rule that asks the job, and remembers the step."""

    def __init__(self, job):
        self.job, self.step = job, 0

    def __call__(self, batch, statistics):
        self.step += 1
        return self.job.rate(self.step - 1, batch)

    def state(self):
        return [float(self.step)]

    def load_state(self, numbers):
        self.step = int(numbers[0])


def minus(outputs, targets):
    return -outputs.mean()


class Interface:
    """The original's sampler by its interface: minibatches dealt out in turn, and one of sample 0 for a rank that has none."""

    def __init__(self, dataset, trace, num_replicas, rank, minibatch_size, seed):
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed)).tolist()
        steps = [order[begin:begin + trace] for begin in range(0, len(order) - trace + 1, trace)]
        self.assignments = [[index for index in range(len(step)) if index % num_replicas == rank] for step in steps]
        self.indices = [step[index] if own else 0 for step, own in zip(steps, self.assignments) for index in own or [0]]

    def set_epoch(self, epoch):
        pass

    def get_batch_assignments(self):
        return self.assignments

    def __iter__(self):
        return iter(self.indices)


class Itself(TestCase):
    def test_sampler(self):
        self.assertEqual(check_sampler(Planned, last="drop", cases=max(CASES, 50)).untried, [])

    def test_loop(self):
        root, folders = self.folder(), []

        def train(job, phase, state):
            before, trace = state or (None, [])
            if before is None:
                # A new training needs none of those before.
                while folders:
                    shutil.rmtree(folders.pop())
            model = torch.nn.Linear(job.samples, 1, bias=False)
            torch.nn.init.zeros_(model.weight)
            data = (job.inputs.astype("float32"), numpy.zeros((job.samples, 1), dtype="float32"))
            for steps in range(1, phase.steps + 1):
                # The weights after each step are those of a training that ends there.
                folders.append(root / str(len(folders)))
                if before:
                    shutil.copytree(before, folders[-1])
                now = trace + [(phase.batch, phase.world_size)] * steps
                options = {"resume": folders[-1]} if before else {
                    "out": folders[-1], "optimizer": "sgd", "momentum": 0, "lr": 1.0, "minibatch": 1, "seed": job.seed, "epochs": 100}
                result = rubato.train(model, data, loss=minus, rule=Rates(job), trace=now, on_trace_end="stop", **options)
                job.record(result.state_dict["weight"])
            return folders[-1], now

        report = check_loop(train, last="drop", cases=CASES)
        self.assertIn("every-sample-once", report.passed)
        print(f"rubato's own loop: {report}", file=sys.stderr)

    def test_the_originals_interface(self):
        self.assertEqual(violations(check_sampler, custom_sampler(Interface), last="drop"), {})

        class Dummies(Interface):
            def get_batch_assignments(self):
                return [own or [0] for own in self.assignments]

        # The minibatch of an idle rank, if it counts.
        self.assertIn("every-sample-once", violations(check_sampler, custom_sampler(Dummies), last="drop"))


if __name__ == "__main__":
    unittest.main()
