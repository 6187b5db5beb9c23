"""pip installs the package, and it works without the build folder."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from support import BINARY, SOURCE, TestCase, rubato_program


class Install(TestCase):
    def test_pip(self):
        folder = self.folder()
        commands = re.search(r"^```\n(/usr/bin/python3 -m venv.*?)^```$", (SOURCE / "docs/python.md").read_text(encoding="utf-8"),
                             re.MULTILINE | re.DOTALL).group(1)
        # As the page has them, but for where they run and what they may look for.
        commands = commands.replace("/usr/bin/python3", sys.executable).replace(" .\n", f" {SOURCE}\n")
        bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        # What is built already is not built again.
        done = subprocess.run(["bash", "-e", "-c", commands], capture_output=True, text=True, cwd=folder,
                              env={**bare, "RUBATO_BUILD_DIR": str(BINARY), "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1",
                                   "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], rubato_program("--version")[1].strip())
        found = subprocess.run([folder / "env" / "bin" / "python", "-c", """
import rubato
result = rubato.train("mnist-cnn", epochs=1, samples=640)
print(rubato.__file__, rubato.__version__, result.sha256, rubato.compare(model="softmax", rule="linear,root", samples=320, tune="never").runs.rows)
"""], capture_output=True, text=True, env=bare, cwd=folder)
        self.assertEqual(found.returncode, 0, found.stderr)
        file, version, sha256, runs = found.stdout.split()
        self.assertTrue(file.startswith(str(folder)))
        self.assertEqual(len(sha256), 64)
        self.assertGreaterEqual(int(runs), 2)
        self.assertEqual(rubato_program("--version")[1].split()[1], version)
        self.assertTrue(Path(file).with_name("__init__.pyi").exists())
        self.assertTrue(Path(file).with_name("py.typed").exists())
        # With the command's checks and pytest's plug-in.
        for arguments in (["bin/rubato", "conform", "--list"], ["bin/python", "-m", "rubato.conformance", "--list"]):
            listed = subprocess.run([folder / "env" / arguments[0], *arguments[1:]], capture_output=True, text=True, env=bare, cwd=folder)
            self.assertIn("every-sample-once ", listed.stdout, listed.stderr)
        helped = subprocess.run([folder / "env" / "bin" / "python", "-m", "pytest", "--help"], capture_output=True, text=True, env=bare, cwd=folder)
        self.assertIn("--rubato-traces", helped.stdout, helped.stderr)


if __name__ == "__main__":
    unittest.main()
