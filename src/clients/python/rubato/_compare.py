"""rubato.compare(): many trainings, as `rubato compare` runs them (docs/compare.md)."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import numpy

from . import _options, _rubato
from ._result import Columns

# Beside the options of a run: those of the command.
_OWN = ("config", "resume", "jobs", "baseline", "budget", "target", "tune", "tune-seeds")


def program():
    """The command `rubato` of this package. Raises Error if there is none."""
    folder = Path(_rubato.__file__).resolve().parent
    for candidate in (folder / "bin" / "rubato", folder.parents[1] / "rubato"):
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    found = shutil.which("rubato")
    if found is None:
        raise _rubato.Error(f"there is no program rubato in {folder / 'bin'} or in PATH; accepted: an installed package")
    return found


class Comparison:
    """The result of a comparison.

    answer: dict
        as answer.json has it
    text: str
        the tables for reading, as in answer.md
    cells, runs: Columns
        as answer.csv and runs.csv have them
    folder: str or None
        the folder of the experiment, if it is kept
    """

    def __init__(self, folder, is_kept=True):
        folder = Path(folder)
        self.folder = str(folder) if is_kept else None
        self.answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
        self.text = (folder / "answer.md").read_text(encoding="utf-8")
        self.cells = _columns_in(folder / "answer.csv")
        self.runs = _columns_in(folder / "runs.csv")

    def __repr__(self):
        return f"<rubato.Comparison: {self.runs.rows} runs{', ' + self.folder if self.folder else ''}>"


def _columns_in(path):
    import csv

    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    columns = Columns()
    for name, values in zip(rows[0], zip(*rows[1:])):
        try:
            columns[name] = numpy.array([float(value) if value else numpy.nan for value in values])
        except ValueError:
            columns[name] = numpy.array(values)
    return columns


def _arguments(options):
    """An argument for each value of an option that takes several; those of the command itself have one each."""
    names = [option["name"] for option in _options.TABLE] + list(_OWN)
    arguments = []
    for word, value in options.items():
        name = _options.option_name(word, "compare", names)
        if value is None:
            continue
        values = value if isinstance(value, (list, tuple, range)) else [value]
        texts = [_options.text_of(word, one) for one in values]
        if name in _OWN and name != "baseline":
            texts = [",".join(texts)]
        arguments += [f"--{name}={text}" for text in texts]
    return arguments


def _errors_of(process):
    """What it has said when it is done. An exception, such as Ctrl-C, has it end its runs, which write checkpoints, and
    a second has it end at once."""
    try:
        return process.communicate()[1]
    except BaseException:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
        raise


def compare(*, out=None, **options):
    """Trains every combination of the values of its options, each in its own process, and says which is best, by how
    much, and how sure that is (docs/compare.md).

    Any option of rubato.train() may be a list of values; `seed=range(1, 6)` is five. Models and data have to be named.
    Further options, as for `rubato compare`: config (a file with a design), resume, jobs, baseline
    ("rule=constant"), budget ("epochs=4"), target, tune ("lr=0.01,0.02"), tune_seeds. `out` is the folder of the
    experiment; by default it is not kept. Returns a Comparison. Ctrl-C, or another exception from a signal handler,
    lets the runs write checkpoints, and compare(resume=FOLDER) continues. A second one ends them at once.
    """
    arguments = _arguments(options)
    with tempfile.TemporaryDirectory(prefix="rubato-") as temporary:
        kept = options.get("resume") or out
        folder = kept or Path(temporary) / "experiment"
        if not options.get("resume"):
            arguments.insert(0, f"--out={os.fspath(folder)}")
        # In a session of its own, so that it does not hear a terminal's Ctrl-C twice.
        process = subprocess.Popen([program(), "compare", "--quiet", *arguments], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        errors = _errors_of(process)
        if process.returncode != 0:
            raise _rubato.Error(errors.strip().removeprefix("rubato compare: ") or
                                f"rubato compare ended with {process.returncode}")
        return Comparison(folder, is_kept=kept is not None)
