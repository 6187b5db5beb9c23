"""rubato.compare(): many trainings, as `rubato compare` runs them (docs/compare.md)."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy

from . import _options, _rubato
from ._columns import Columns

# Beside the options of a run: those of the command.
_OWN = ("config", "resume", "jobs", "baseline", "budget", "target", "tune", "tune-seeds")


def program():
    """The command `rubato` that belongs to this package. Raises Error where there is none."""
    folder = Path(_rubato.__file__).resolve().parent
    for candidate in (folder / "bin" / "rubato", folder.parents[1] / "rubato"):
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    found = shutil.which("rubato")
    if found is None:
        raise _rubato.Error(f"there is no program rubato in {folder / 'bin'} or in PATH; accepted: an installed package")
    return found


class Comparison:
    """What a comparison came to.

    answer: dict
        as answer.json has it
    text: str
        the tables for people, as answer.md has them
    cells, runs: Columns
        as answer.csv and runs.csv have them
    folder: str
        of the experiment
    """

    def __init__(self, folder):
        folder = Path(folder)
        self.folder = str(folder)
        self.answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
        self.text = (folder / "answer.md").read_text(encoding="utf-8")
        self.cells = _columns_in(folder / "answer.csv")
        self.runs = _columns_in(folder / "runs.csv")

    def __repr__(self):
        return f"<rubato.Comparison: {self.runs.rows} runs, {self.folder}>"


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


def _list(word, value):
    values = value if isinstance(value, (list, tuple, range)) else [value]
    return ",".join(_options.text_of(word, one) for one in values)


def compare(*, out=None, **options):
    """Trains every combination of the values of its options, in processes of their own, and says which is best, by
    how much, and how sure that is (docs/compare.md).

    Any option of rubato.train() may be a list of values; `seed=range(1, 6)` are five. Models and data are those with a
    name. Beside them, as `rubato compare` has them: design, resume, jobs, baseline ("rule=constant"), budget
    ("epochs=4"), target, tune ("lr=0.01,0.02"), tune_seeds. `out` is the folder of the experiment; by default it is not kept.
    Returns a Comparison. Ctrl-C lets the runs write checkpoints; compare(resume=FOLDER) goes on.
    """
    names = [option["name"] for option in _options.TABLE] + list(_OWN)
    with tempfile.TemporaryDirectory(prefix="rubato-") as temporary:
        folder = out or options.get("resume") or Path(temporary) / "experiment"
        arguments = [] if options.get("resume") else [f"--out={os.fspath(folder)}"]
        for word, value in options.items():
            if value is not None:
                arguments.append(f"--{_options.option_name(word, 'compare', names)}={_list(word, value)}")
        process = subprocess.Popen([program(), "compare", "--quiet", *arguments], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        try:
            errors = process.communicate()[1]
        except KeyboardInterrupt:
            # It has heard of it, too, and lets its runs end.
            process.communicate()
            raise
        if process.returncode != 0:
            raise _rubato.Error(errors.strip().removeprefix("rubato compare: ") or
                                f"rubato compare ended with {process.returncode}")
        return Comparison(folder)
