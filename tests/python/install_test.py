"""pip installs the package, and it works without the build folder."""

import os
import subprocess
import sys
import unittest

from support import BINARY, SOURCE, TestCase, rubato_program


class Install(TestCase):
    def test_pip(self):
        target = self.folder() / "site"
        # What is built already is not built again.
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--quiet",
             "--disable-pip-version-check", f"--target={target}", str(SOURCE)],
            capture_output=True, text=True, env={**os.environ, "RUBATO_BUILD_DIR": str(BINARY)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        bare = {**os.environ, "PYTHONPATH": str(target)}
        found = subprocess.run([sys.executable, "-c", """
import rubato
result = rubato.train("mnist-cnn", epochs=1, samples=640)
print(rubato.__file__, rubato.__version__, result.sha256, rubato.compare(model="softmax", rule="linear,root", samples=320).runs.rows)
"""], capture_output=True, text=True, env=bare, cwd=target)
        self.assertEqual(found.returncode, 0, found.stderr)
        file, version, sha256, runs = found.stdout.split()
        self.assertTrue(file.startswith(str(target)))
        self.assertEqual(len(sha256), 64)
        self.assertGreaterEqual(int(runs), 2)
        self.assertEqual(rubato_program("--version")[1].split()[1], version)
        listed = subprocess.run([str(target / "bin" / "rubato"), "--version"], capture_output=True, text=True, env=bare)
        self.assertEqual(listed.stdout, rubato_program("--version")[1], listed.stderr)
        self.assertTrue((target / "rubato" / "__init__.pyi").exists())
        self.assertTrue((target / "rubato" / "py.typed").exists())


if __name__ == "__main__":
    unittest.main()
