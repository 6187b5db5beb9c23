"""Programs under test: a command is started with some processes, killed after a step, and started again with others."""

import dataclasses
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import _judge
from ._cases import Case, Phase
from ._job import _FOLDER
from ._search import TrainingSearch


def _end(folder):
    """Kills every process of a case, which its environment tells."""
    marker = f"{_FOLDER}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker in entry.read_bytes().split(b"\0") and int(entry.parent.name) != os.getpid():
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except OSError:
            # The process is another user's, or has ended.
            continue


def _start(command, case, processes, kill_after, folder, timeout):
    """Runs the command until it ends, or until it is killed after a number of steps of the training."""
    settings = dataclasses.asdict(case) | {"kill_after": kill_after}
    (folder / "case.json").write_text(json.dumps(settings))
    (folder / "kill").unlink(missing_ok=True)
    arguments = [part.replace("{processes}", str(processes)).replace("{folder}", str(folder)) for part in command]
    deadline = time.monotonic() + timeout
    with open(folder / "output", "w") as output:
        program = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, _FOLDER: str(folder)})
        try:
            while program.poll() is None:
                if (folder / "kill").exists():
                    return
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{shlex.join(arguments)} has not ended after {timeout} s: {_tail(folder)}")
                time.sleep(0.02)
        finally:
            _end(folder)
            program.wait()
    if program.returncode != 0:
        raise RuntimeError(f"{shlex.join(arguments)} ended with {program.returncode}: {_tail(folder)}")
    if kill_after is not None:
        raise RuntimeError(f"{shlex.join(arguments)} recorded fewer than {kill_after} steps")


def _tail(folder):
    return " | ".join((folder / "output").read_text(errors="replace").strip().splitlines()[-3:])


class _CommandSearch(TrainingSearch):
    def __init__(self, command, waive, claims, timeout):
        super().__init__(command, "process", waive, claims)
        self.timeout = timeout
        # Shrinking asks for the same cases again, each of which takes seconds.
        self.run = functools.lru_cache(maxsize=None)(self._run)

    def _run(self, case):
        def train():
            with tempfile.TemporaryDirectory(prefix="rubato-") as name:
                folder, steps = Path(name), 0
                for phase in case.phases:
                    steps += phase.steps
                    last = phase is case.phases[-1]
                    _start(self.target, case, phase.world_size, None if last else steps, folder, self.timeout)
                self.tried.add("equal-steps")
                entries = [json.loads(line) for file in folder.glob("records-*.jsonl") for line in file.read_text().splitlines()]
                return _judge.Run(case, entries)

        return self.attempt(case, train)


def check_command(command, *, last="short", schedule="steps", ranks=2, flat=False, waive=None, cases=6, case=None, seed=None,
                  timeout=120):
    """check_resume() for a command."""
    __tracebackhide__ = True
    if isinstance(command, str):
        command = shlex.split(command)
    claims = {"last": last if last != "short" else None, "schedule": schedule if schedule != "steps" else None, "flat": flat}
    search = _CommandSearch([sys.executable if part == "{python}" else part for part in command], waive, claims, timeout)
    fixed = {"last": last, "schedule": schedule, "flat": flat}
    if case is not None:
        return search.check(None, 1, None, Case.parse(str(case), **fixed))
    from hypothesis import strategies as st

    # Few and short: two steps before or after one interruption, of two epochs and a last batch that is short.
    strategy = st.builds(
        lambda worlds, before, after, samples: Case(samples, (Phase(worlds[0], before, 2), Phase(worlds[1], after, 2)), **fixed),
        st.tuples(st.integers(1, ranks), st.integers(1, ranks)), st.integers(1, 2), st.integers(1, 2), st.sampled_from((3, 4, 6)))
    return search.check(strategy, cases, seed, None)
