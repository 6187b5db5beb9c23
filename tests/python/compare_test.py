"""rubato.compare()."""

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
        found = rubato.compare(model="softmax", rule="linear,root", seed=1, samples=320, trace=32)
        self.assertGreaterEqual(found.runs.rows, 2)

    def test_errors(self):
        with self.assertRaisesRegex(rubato.Error, "^--rule.*lineer"):
            rubato.compare(rule=["lineer", "root"])
        with self.assertRaisesRegex(TypeError, "compare.*ruel.*rule"):
            rubato.compare(ruel=1)
        with self.assertRaisesRegex(rubato.Error, "--model own: runs that are processes"):
            rubato.compare(model="own", rule=["root", "linear"])


if __name__ == "__main__":
    unittest.main()
