"""The script that fits laws of lifetimes (examples/python/fit_lives.py, docs/traces.md)."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import SHARED, TestCase, rubato_program

try:
    import numpy
    import scipy  # noqa: F401: the script needs it
except ImportError:
    print("skipped: no numpy and scipy here")
    sys.exit(77)

ROOT = Path(os.environ["RUBATO_SOURCE_DIR"])


def fitted(file, *options):
    """{law: {parameter: value}}, the distance, p, and the generator that the script prints."""
    done = subprocess.run([sys.executable, ROOT / "examples/python/fit_lives.py", file, *options], capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\w+) +(\w+=\S+) +log-likelihood (-?[\d.]+)  AIC (-?[\d.]+)$", done.stdout, re.MULTILINE)
    laws = {name: {key: float(value) for key, value in (part.split("=") for part in text.split(","))}
            for name, text, _, _ in rows}
    distance, p = map(float, re.search(r"at a distance of ([\d.]+) .*, p = ([\d.]+): ", done.stdout).groups())
    generator = done.stdout.splitlines()[-1]
    if not any(option.startswith("--law") for option in options):
        assert f"law={min(rows, key=lambda row: float(row[3]))[0]}," in generator, done.stdout
    return laws, distance, p, generator


class Fit(TestCase):
    def lives(self, hours, preempted):
        file = self.folder() / "lives.jsonl"
        file.write_text("".join(json.dumps({"seconds": 3600 * float(h), "preempted": bool(p)}) + "\n"
                                for h, p in zip(hours, preempted)))
        return file

    def test_finds_the_law_of_lives(self):
        random = numpy.random.default_rng(1)
        for shape in (0.5, 2):
            lives = 3 * random.weibull(shape, 2000)
            ends = random.exponential(2 * numpy.median(lives), len(lives))
            laws, _, p, generator = fitted(self.lives(numpy.minimum(lives, ends), lives <= ends))
            self.assertAlmostEqual(laws["weibull"]["shape"], shape, delta=0.1 * shape)
            self.assertAlmostEqual(laws["weibull"]["life"], 3, delta=0.5)
            self.assertGreater(p, 0.01)
            self.assertIn("law=weibull,", generator)

    def test_refutes_a_wrong_law(self):
        lives = 3 * numpy.random.default_rng(2).weibull(0.4, 1000)
        _, _, p, generator = fitted(self.lives(lives, lives > 0), "--law=exponential")
        self.assertLess(p, 0.05)
        self.assertIn("law=exponential,", generator)

    def test_counts_machines_of_events(self):
        events = [f"0,add,n{node}" for node in range(8)]
        for hour in range(1, 41):
            events += [f"{hour * 3600000},remove,n{hour - 1}", f"{hour * 3600000 + 1800000},add,n{hour + 7}"]
        file = self.folder() / "events.csv"
        file.write_text("\n".join(events) + "\n")
        *_, generator = fitted(file, "--machine=4", "--hours=8760", "--seed=7", "--law=exponential")
        self.assertRegex(generator, r"^machines:most=8,start=8,wait=0\.5,machine=4,law=exponential,life=[\d.]+,"
                                    r"hours=8760,seed=7$")
        code, out, errors = rubato_program("trace", "show", "--json", generator)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(json.loads(out)["most"], 32)

    def test_fits_googles_machines(self):
        file = SHARED / "data/traces/vm_lifetimes.jsonl"
        if not file.exists():
            self.skipTest(f"no {file}")
        _, distance, p, generator = fitted(file, "--deadline=24")
        self.assertAlmostEqual(distance, 0.037, delta=0.001)
        self.assertGreater(p, 0.05)
        self.assertIn("law=bathtub,", generator)
        self.assertEqual(rubato_program("trace", "show", generator)[0], 0)

    def test_does_what_the_guide_shows(self):
        page = (ROOT / "docs/traces.md").read_text()
        make, run, shown = re.search(r"\n\$ (\{ [^\n]* > lives\.jsonl)\n\$ python3 (examples/python/fit_lives\.py [^\n]*)\n"
                                     r"([^`]*)```", page).groups()
        folder = self.folder()
        subprocess.run(make, shell=True, cwd=folder, check=True)
        script, *arguments = run.split()
        out = subprocess.run([sys.executable, ROOT / script, *arguments], cwd=folder, capture_output=True, text=True).stdout
        # p depends on the random numbers of numpy's version.
        self.assertEqual(re.sub(r"p = [\d.]+", "p", out), re.sub(r"p = [\d.]+", "p", shown))


if __name__ == "__main__":
    unittest.main()
