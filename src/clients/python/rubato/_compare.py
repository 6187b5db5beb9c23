"""rubato.compare(): many trainings, as `rubato compare` runs them (docs/compare.md)."""

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import numpy

from . import _options, _rubato
from ._callbacks import NamedRule, rule_for_cpp
from ._result import Columns
from ._show import plot_intervals
from ._train import Diverged, TargetMissed, train

# Options of the command besides those of a run.
_OWN = ("config", "resume", "jobs", "check", "baseline", "budget", "target", "margin", "tune", "tune-seeds",
        "tune-for", "rates", "reuse")

# Exit code for an answer that lacks runs.
_INCOMPLETE = 27


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
        # A folder that is kept is read when a notebook asks.
        self._html = None if is_kept else _rubato.html_of_folder(str(folder))

    def plot(self, axes=None):
        """Draws the mean of each choice and its 95 % interval with matplotlib, on new axes unless there are some, and
        returns the axes."""
        return plot_intervals(self.answer, axes)

    def _repr_html_(self):
        return self._html or _rubato.html_of_folder(self.folder)

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


def _named_rules(value):
    """The rules, with functions replaced by their names, and {name: function}."""
    values = value if isinstance(value, (list, tuple)) else [value]
    texts, own = [], {}
    for rule in values:
        if not callable(rule):
            texts.append(rule)
            continue
        first = name = re.sub(r"[^\w.-]", "", getattr(rule, "__name__", type(rule).__name__), flags=re.ASCII) or "rule"
        while name in own:
            name = f"{first}-{len(own) + 1}"
        try:
            rule_for_cpp(rule)
        except Exception as error:
            raise _rubato.Error(f"rule {name}: {error}") from error
        own[name] = rule
        texts.append(NamedRule(name, rule).text)
    return texts, own


def _text_of(word, value):
    try:
        return _options.text_of(word, value)
    except TypeError as error:
        raise _rubato.Error(f"{error}; models, data and losses are named here, and may be files "
                            "(docs/compare.md)") from None


def _arguments(options):
    """One argument for each value of a run's option; options of the command itself have a single one."""
    names = [option["name"] for option in _options.TABLE] + list(_OWN)
    arguments = []
    for word, value in options.items():
        name = _options.option_name(word, "compare", names)
        if value is None:
            continue
        values = value if isinstance(value, (list, tuple, range)) else [value]
        texts = [_text_of(word, one) for one in values]
        if name in _OWN and name != "baseline":
            texts = [",".join(texts)]
        arguments += [f"--{name}={text}" for text in texts]
    return arguments


def _left_to_python(folder):
    """(folder, name of the rule) of each run that is missing and whose rule is a function."""
    file = Path(folder) / "runs.csv"
    runs = _columns_in(file) if file.exists() else Columns()
    for name, end in zip(runs.get("name", ()), runs.get("end", ())):
        run = Path(folder) / "runs" / name
        config = run.with_name(f"{name}.toml").read_text(encoding="utf-8")
        rule = re.search(r'^rule = "own:name=([^"]+)"$', config, re.MULTILINE)
        if rule and end == "missing":
            yield run, rule[1]


def _train_in_python(run, name, rules, threads):
    """Trains a run of an experiment whose rule is a function, or continues it. The reason of its end is recorded as by a
    process of the command: in its folder, or in a file next to it."""
    if name not in rules:
        raise _rubato.Error(f"rule: the run {run} has the function '{name}' as its rule; accepted: with rule=[{name}, ...], "
                            "a function of that name")
    begun = (run / "config.toml").exists() and any(run.glob("checkpoints/*.safetensors"))
    if not begun:
        shutil.rmtree(run, ignore_errors=True)
    where = {"resume": run} if begun else {"config": run.with_name(f"{run.name}.toml"), "out": run}
    try:
        # Each run has a copy, because the state of the rule belongs to one run.
        train(rule=NamedRule(name, copy.deepcopy(rules[name])), threads=threads, **where)
    except (Diverged, TargetMissed):
        pass
    except (_rubato.OutputError, _rubato.OutOfMemory):
        raise
    except _rubato.Error as error:
        run.with_name(f"{run.name}.failed").write_text(f"{error}\n", encoding="utf-8")
    except Exception as error:
        raise _rubato.Error(f"rule {name}: {type(error).__name__}: {error} (of the run {run})") from error


def _errors_of(process):
    """The errors of the process when it is done. An exception, such as Ctrl-C, makes it end its runs, which write
    checkpoints, and a second one makes it end at once."""
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


def _conduct(arguments):
    """Runs the command: its exit code, and its errors."""
    # The process has a session of its own, so that it does not get a terminal's Ctrl-C twice.
    process = subprocess.Popen([program(), "compare", "--quiet", *arguments], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    errors = _errors_of(process)
    return process.returncode, errors


def compare(*, out=None, **options):
    """Trains every combination of the values of its options, each in its own process, and says which is best, by how
    much, and how sure that is (docs/compare.md).

    Any option of rubato.train() may be a list of values; `seed=range(1, 6)` is five. Models and data have to be named.
    A rule may be a function, as in rubato.train(): its runs are trained in this process, one after the other, each with
    a copy of it, after those that have processes. Further options, as for `rubato compare`: config (a file with a
    design), resume, jobs, check ("2%"), baseline ("rule=constant"), budget ("epochs=4"), target, margin (a number, or
    "baseline"), tune ("lr=0.01,0.02", "lr", "never"), tune_seeds, tune_for ("each"), rates (4), reuse (a folder of
    experiments). Without lr, the rate that is best for the baseline is found first, as by tune="lr".
    `out` is the folder of the experiment; by default it is not kept. Returns a Comparison. Raises Error for mistakes in
    the options, and for what a rule raises. Ctrl-C, or another exception from a signal handler, lets the runs write
    checkpoints, and compare(resume=FOLDER), with the same functions, continues. A second one ends them at once.
    """
    texts, rules = _named_rules(options.get("rule"))
    arguments = _arguments({**options, "rule": texts} if rules else options)
    with tempfile.TemporaryDirectory(prefix="rubato-") as temporary:
        kept = options.get("resume") or out
        folder = kept or Path(temporary) / "experiment"
        if not options.get("resume"):
            arguments.insert(0, f"--out={os.fspath(folder)}")
        code, errors = _conduct(arguments)
        threads = options.get("threads")
        # Runs that tune have the baseline's rule, which is not a function.
        while code == _INCOMPLETE and (left := list(_left_to_python(folder))):
            for run, name in left:
                _train_in_python(run, name, rules, threads if isinstance(threads, int) else None)
            code, errors = _conduct(arguments)
        if code != 0:
            raise _rubato.Error(errors.strip().removeprefix("rubato compare: ") or f"rubato compare ended with {code}")
        return Comparison(folder, is_kept=kept is not None)
