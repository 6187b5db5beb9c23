"""rubato.compare()."""

import json
import os
import signal
import tempfile
import threading
import time
import unittest
from unittest import mock

import rubato
from support import TestCase, rubato_program


def linear(batch, statistics):
    return statistics["scale"]


class Averaging:
    """The mean of the scales so far."""

    def __init__(self):
        self.numbers = [0.0, 0.0]

    def __call__(self, batch, statistics):
        self.numbers = [self.numbers[0] + statistics["scale"], self.numbers[1] + 1]
        return self.numbers[0] / self.numbers[1]

    def state(self):
        return self.numbers

    def load_state(self, numbers):
        self.numbers = list(numbers)


class OwnRules(TestCase):
    OPTIONS = {"model": "softmax", "samples": 6400, "seed": [1, 2], "tune": "never"}

    def test_have_statistics_beside_those_with_names(self):
        folder = self.folder() / "experiment"
        averaging = Averaging()
        found = rubato.compare(rule=["linear", linear, averaging, lambda batch, statistics: 1.0], out=folder, **self.OPTIONS)
        self.assertEqual(found.runs.rows, 10)
        self.assertFalse({"missing", "failed"} & set(found.runs["end"]))
        self.assertEqual(averaging.numbers, [0, 0], "each run has a copy")
        means = dict(zip(found.cells["rule"], found.cells["mean"]))
        # Two of one name: the function has its whole text.
        self.assertEqual(set(means), {"constant", "linear", "own:name=linear", "Averaging", "lambda"})
        self.assertEqual(means["own:name=linear"], means["linear"])
        self.assertNotEqual(means["lambda"], means["linear"])
        self.assertNotEqual(means["Averaging"], means["linear"])
        # Again there is nothing to do, and more seeds go on where the functions are given again.
        before = (folder / "answer.csv").read_text()
        rubato.compare(resume=folder)
        self.assertEqual((folder / "answer.csv").read_text(), before)
        with self.assertRaisesRegex(rubato.Error, r"has the function '.*' as its rule; accepted: with rule=\["):
            rubato.compare(resume=folder, seed=[1, 2, 3])
        more = rubato.compare(resume=folder, seed=[1, 2, 3], rule=["linear", linear])
        self.assertEqual(more.runs.rows, 9)

    def test_what_they_raise_is_an_error_and_goes_on_when_it_is_mended(self):
        folder = self.folder() / "experiment"

        def linear(batch, statistics):
            calls.append(batch)
            if len(calls) == 5:
                raise KeyError("mine")
            return statistics["scale"]

        calls = []
        with self.assertWarns(RuntimeWarning), \
                self.assertRaisesRegex(rubato.Error, r"^rule linear: KeyError: 'mine' \(of the run .*/runs/") as caught:
            rubato.compare(rule=linear, out=folder, **self.OPTIONS)
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        found = rubato.compare(rule=linear, resume=folder)
        self.assertEqual(found.runs.rows, 4)
        wanted = rubato.compare(rule="linear", **self.OPTIONS)
        self.assertEqual(found.answer["cells"][0]["value"], wanted.answer["cells"][0]["value"])
        for broken, words in ((lambda batch, statistics: "one", "rule lambda: TypeError: rule: it returned"),
                              (type("Half", (), {"__call__": linear, "state": list})(), r"rule Half: .*one of state\(\)")):
            with self.assertRaisesRegex(rubato.Error, words):
                rubato.compare(rule=[broken, "linear"], **self.OPTIONS)
        found = rubato.compare(rule=lambda batch, statistics: -1.0, **self.OPTIONS)
        self.assertEqual(list(found.runs["end"]).count("failed"), 2)

    def test_are_known_to_the_command(self):
        folder = self.folder() / "experiment"
        rubato.compare(rule=["linear", linear], out=folder, **self.OPTIONS)
        code, _, errors = rubato_program("compare", f"--resume={folder}", "--seed=1..3")
        self.assertEqual(code, 27, errors)
        code, out, errors = rubato_program("compare", f"--resume={folder}", "--seed=1,2")
        self.assertEqual(code, 0, errors)
        answer = json.loads((folder / "answer.json").read_text())
        self.assertEqual(len(answer["cells"]), 3)


class Compare(TestCase):
    def test_is_that_of_the_command_line(self):
        folder = self.folder()
        ours = rubato.compare(model="softmax", rule=["linear", "root"], seed=range(1, 3), samples=2000, tune="never",
                              out=folder / "ours")
        code, _, errors = rubato_program("compare", "--quiet", "--model=softmax", "--rule=linear,root", "--seed=1,2",
                                         "--samples=2000", "--tune=never", f"--out={folder}/theirs")
        self.assertEqual(code, 0, errors)
        theirs = (folder / "theirs" / "answer.md").read_text()
        self.assertEqual(ours.text.splitlines()[-3:], theirs.splitlines()[-3:])
        self.assertEqual((folder / "ours" / "answer.csv").read_text(), (folder / "theirs" / "answer.csv").read_text())
        self.assertEqual(ours.runs.rows, 6)
        self.assertEqual(ours.folder, str(folder / "ours"))
        self.assertIn("rule", ours.runs)

    def test_kept_nowhere(self):
        here, temporary = self.folder(), self.folder()
        before, tempfile.tempdir = tempfile.tempdir, str(temporary)
        self.addCleanup(setattr, tempfile, "tempdir", before)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(here)
        found = rubato.compare(model="softmax", rule="linear,root", seed=1, samples=320, trace=32, tune="never")
        self.assertGreaterEqual(found.runs.rows, 2)
        self.assertIsNone(found.folder)
        self.assertEqual((list(here.iterdir()), list(temporary.iterdir())), ([], []))
        # What a notebook shows was read before.
        self.assertIn("Final test accuracy", found._repr_html_())

    def test_plots(self):
        found = rubato.compare(model="softmax", rule=["linear", "root"], cores=[2, 4], seed=[1, 2], samples=320, tune="never",
                               trace=["32", "64"])
        axes = mock.Mock()
        self.assertIs(found.plot(axes), axes)
        drawn = [(call.args, call.kwargs["xerr"]) for call in axes.errorbar.call_args_list]
        rows = zip(found.cells["mean"], found.cells["half_width"])
        self.assertEqual(drawn, [((mean, row), half) for row, (mean, half) in enumerate(rows)])
        places, labels = axes.set_yticks.call_args.args
        self.assertEqual(len(labels), len(places))
        self.assertEqual(len(set(labels)), len(labels))
        self.assertIn("trace 32, cores 2, linear", labels)

    def test_values_with_commas(self):
        found = rubato.compare(model="softmax", samples=320, trace=32, clock="virtual", seed=1, rule="linear", tune="never",
                               cluster=["substep=0.1,restart=60", "substep=0.2"])
        self.assertEqual(set(found.runs["cluster"]), {"substep=0.1,restart=60", "substep=0.2"})
        found = rubato.compare(model="softmax", samples=320, trace=32, seed=1, weight_decay=0.1, tune="never",
                               no_decay=["bias,norm", "weight"])
        self.assertEqual(set(found.runs["no-decay"]), {"bias,norm", "weight"})
        found = rubato.compare(model="softmax", samples=320, trace=32, seed=1, rule="linear", tune="never",
                               lr_for=[{"*.bias": 10, "*": 1}, {"*": 1}])
        self.assertEqual(set(found.runs["lr-for"]), {"*.bias=10,*=1", "*=1"})

    def test_the_rate_is_found_and_varied(self):
        found = rubato.compare(model="softmax", rule="linear", seed=1, samples=3200, tune="lr=0.05,0.1,only", tune_seeds=1,
                               tune_for="each", rates=2).answer
        self.assertIsNone(found["untuned"])
        self.assertEqual([len(tuned["values"]) for tuned in found["tuning"]], [2, 2])
        self.assertEqual([[point["factor"] for point in cell["points"]] for cell in found["rates"]], [[0.5, 1, 2]] * 2)
        given = rubato.compare(model="softmax", rule="linear", seed=1, samples=3200, lr=0.1).answer
        self.assertEqual(given["untuned"], "lr 0.1 as given: not tuned")

    def test_exceptions_let_the_runs_write_checkpoints(self):
        class Mine(Exception):
            pass

        def handler(number, frame):
            raise Mine

        before = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        folder = self.folder() / "experiment"

        def raise_when_it_trains():
            # One with a step in it.
            while not any(file.stat().st_size for file in folder.rglob("metrics.jsonl")):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGUSR1)

        thread = threading.Thread(target=raise_when_it_trains)
        thread.start()
        with self.assertRaises(Mine):
            rubato.compare(model="softmax", trace=32, epochs=100_000, rule=["linear", "root"], seed=1, lr=0.01, out=folder)
        thread.join()
        # Nobody writes any more, and there is something to go on from.
        self.assertTrue(list(folder.rglob("checkpoints/*.safetensors")))
        sizes = [file.stat().st_size for file in folder.rglob("metrics.jsonl")]
        time.sleep(0.3)
        self.assertEqual([file.stat().st_size for file in folder.rglob("metrics.jsonl")], sizes)

    def test_errors(self):
        with self.assertRaisesRegex(rubato.Error, "^--rule.*lineer"):
            rubato.compare(rule=["lineer", "root"])
        with self.assertRaisesRegex(rubato.Error, "data: it is of type list; .*are named here"):
            rubato.compare(data=[[1.0], [0]])
        with self.assertRaisesRegex(rubato.Error, "model: it is of type object"):
            rubato.compare(model=object())
        with self.assertRaisesRegex(TypeError, "compare.*ruel.*rule"):
            rubato.compare(ruel=1)
        with self.assertRaisesRegex(rubato.Error, "--model own: each run is a process"):
            rubato.compare(model="own", rule=["root", "linear"])


if __name__ == "__main__":
    unittest.main()
