"""What the tests share."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["RUBATO_PROGRAM"]
SHARED = Path(os.environ["RUBATO_SHARED_DIR"])
SOURCE = Path(os.environ["RUBATO_SOURCE_DIR"])
BINARY = Path(os.environ["RUBATO_BINARY_DIR"])


def rubato_program(*arguments, folder=None):
    """What the command line answers: (exit code, stdout, stderr)."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def summary_of_command_line(*arguments):
    """summary.json of `rubato train` with these arguments."""
    with tempfile.TemporaryDirectory() as folder:
        code, _, errors = rubato_program("train", "--quiet", f"--out={folder}/run", *arguments)
        if code != 0:
            raise AssertionError(errors)
        return json.loads(Path(folder, "run", "summary.json").read_text())


def python(code, arguments=(), **environment):
    """Runs a program of its own: (exit code, stdout, stderr)."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=600)
    return done.returncode, done.stdout, done.stderr


class TestCase(unittest.TestCase):
    def folder(self):
        """A folder that goes with the test."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        return Path(temporary.name)
