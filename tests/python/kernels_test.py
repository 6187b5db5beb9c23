"""Which kernels the libraries take, by the order of imports."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from support import TestCase, python, summary_of_command_line

SUMMARY = """
import json
print(json.dumps(rubato.train("mnist-cnn", epochs=1, samples=64, trace=32).summary["kernels"]))
"""

# What the process has of OpenBLAS, when it starts by itself.
CORE = """
import ctypes
blas = ctypes.CDLL("libblas.so.3")
blas.openblas_get_corename.restype = ctypes.c_char_p
print(blas.openblas_get_corename().decode())
"""


class Order(TestCase):
    def setUp(self):
        self.bare = {name: value for name, value in os.environ.items()
                     if name not in ("OPENBLAS_CORETYPE", "RUBATO_STARTED_AGAIN", "RUBATO_KERNELS")}
        self.by_itself = self.run_python(CORE)[0].strip()
        import rubato._machine as machine

        # The import has set it in this process, too, where it corrects something.
        os.environ.pop("OPENBLAS_CORETYPE", None)
        self.wanted = dict(machine.kernel_variables("native", self.by_itself, "DYNAMIC_ARCH"))

    def run_python(self, code, **variables):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**self.bare, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_rubato_first(self):
        out, errors = self.run_python("import rubato, numpy" + SUMMARY)
        kernels = json.loads(out)
        self.assertEqual(errors, "")
        self.assertEqual(kernels["openblas"], self.wanted.get("OPENBLAS_CORETYPE", self.by_itself))
        self.assertEqual(kernels["openblas_by_itself"], self.by_itself)

    def test_rubato_last(self):
        # Both load OpenBLAS.
        out, errors = self.run_python("import numpy.linalg, torch, rubato" + SUMMARY)
        self.assertEqual(json.loads(out)["openblas"], self.by_itself)
        if self.wanted:
            self.assertEqual(errors.count("RuntimeWarning"), 1, errors)
            self.assertIn(f"start Python with OPENBLAS_CORETYPE={self.wanted['OPENBLAS_CORETYPE']}", errors)
        else:
            self.assertEqual(errors, "")

    def test_slow_kernels_are_corrected_or_warned_of(self):
        wanted = self.core_for("Prescott")
        if not wanted:
            self.skipTest("this CPU has nothing better than Prescott's kernels")
        # An OpenBLAS that does not know the CPU, as it answers before it is loaded.
        out, errors = self.run_python("""
import os, subprocess
class Answer:
    stdout = "Prescott\\nOpenBLAS DYNAMIC_ARCH"
run, subprocess.run = subprocess.run, lambda *arguments, **options: Answer
import rubato
subprocess.run = run
print(os.environ["OPENBLAS_CORETYPE"], os.environ["RUBATO_STARTED_AGAIN"])
""" + SUMMARY)
        first, kernels = out.splitlines()
        self.assertEqual((first, errors), (f"{wanted} native:Prescott", ""))
        self.assertEqual(json.loads(kernels)["openblas"], wanted)
        self.assertEqual(json.loads(kernels)["openblas_by_itself"], "Prescott")
        # And one that is loaded with them already.
        out, errors = self.run_python("""
import os, numpy.linalg
del os.environ["OPENBLAS_CORETYPE"]
import rubato
rubato.train
""", OPENBLAS_CORETYPE="Prescott")
        self.assertEqual(errors.count("RuntimeWarning"), 1, errors)
        self.assertIn(f"import rubato before numpy and torch, or start Python with OPENBLAS_CORETYPE={wanted}", errors)

    @staticmethod
    def core_for(core):
        import rubato._machine as machine

        # The import has set it in this process, too, where it corrects something.
        os.environ.pop("OPENBLAS_CORETYPE", None)
        return dict(machine.kernel_variables("native", core, "DYNAMIC_ARCH")).get("OPENBLAS_CORETYPE")

    def test_the_users_choice_stays(self):
        out, errors = self.run_python("import rubato" + SUMMARY, OPENBLAS_CORETYPE="Sandybridge")
        self.assertEqual((json.loads(out)["openblas"], errors), ("Sandybridge", ""))

    def test_portable(self):
        if "avx2" not in Path("/proc/cpuinfo").read_text():
            self.skipTest("this CPU has no AVX2")
        out, _ = self.run_python("""
import rubato
print(rubato.train("mnist-cnn", epochs=1, kernels="portable").sha256)
""", RUBATO_KERNELS="portable")
        # The program's weights, whose hash is in docs/kernels.md.
        expected = summary_of_command_line("--kernels=portable", "--epochs=1")["weights_sha256"]
        self.assertEqual(out.strip(), expected)
        code, _, errors = python("import rubato\nrubato.train('mnist-cnn', kernels='portable')", RUBATO_KERNELS="native",
                                 ATEN_CPU_CAPABILITY="default")
        self.assertEqual(code, 1)
        self.assertIn("--kernels portable: these libraries compute with", errors)
        code, _, errors = python("import rubato", RUBATO_KERNELS="best")
        self.assertIn("RUBATO_KERNELS=best", errors)


if __name__ == "__main__":
    unittest.main()
