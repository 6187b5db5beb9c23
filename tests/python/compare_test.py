"""rubato.compare()."""

import os
import signal
import tempfile
import threading
import time
import unittest

import rubato
from support import TestCase, rubato_program


class Compare(TestCase):
    def test_is_that_of_the_command_line(self):
        folder = self.folder()
        ours = rubato.compare(model="softmax", rule=["linear", "root"], seed=range(1, 3), samples=2000, out=folder / "ours")
        code, _, errors = rubato_program("compare", "--quiet", "--model=softmax", "--rule=linear,root", "--seed=1,2",
                                         "--samples=2000", f"--out={folder}/theirs")
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
        found = rubato.compare(model="softmax", rule="linear,root", seed=1, samples=320, trace=32)
        self.assertGreaterEqual(found.runs.rows, 2)
        self.assertIsNone(found.folder)
        self.assertEqual((list(here.iterdir()), list(temporary.iterdir())), ([], []))

    def test_values_with_commas(self):
        found = rubato.compare(model="softmax", samples=320, trace=32, clock="virtual", seed=1, rule="linear",
                               cluster=["substep=0.1,restart=60", "substep=0.2"])
        self.assertEqual(set(found.runs["cluster"]), {"substep=0.1,restart=60", "substep=0.2"})
        found = rubato.compare(model="softmax", samples=320, trace=32, seed=1, weight_decay=0.1,
                               no_decay=["bias,norm", "weight"])
        self.assertEqual(set(found.runs["no-decay"]), {"bias,norm", "weight"})

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
            rubato.compare(model="softmax", trace=32, epochs=100_000, rule=["linear", "root"], seed=1, out=folder)
        thread.join()
        # Nobody writes any more, and there is something to go on from.
        self.assertTrue(list(folder.rglob("checkpoints/*.safetensors")))
        sizes = [file.stat().st_size for file in folder.rglob("metrics.jsonl")]
        time.sleep(0.3)
        self.assertEqual([file.stat().st_size for file in folder.rglob("metrics.jsonl")], sizes)

    def test_errors(self):
        with self.assertRaisesRegex(rubato.Error, "^--rule.*lineer"):
            rubato.compare(rule=["lineer", "root"])
        with self.assertRaisesRegex(TypeError, "compare.*ruel.*rule"):
            rubato.compare(ruel=1)
        with self.assertRaisesRegex(rubato.Error, "--model own: runs that are processes"):
            rubato.compare(model="own", rule=["root", "linear"])


if __name__ == "__main__":
    unittest.main()
