"""python3 -m rubato.conformance MODULE:NAME, which `rubato conform` runs."""

import argparse
import importlib
import inspect
import os
import sys

from . import CHECKS, NonConforming, check_loop, check_resume, check_sampler, read_trace

# Exit codes of rubato (docs/runs.md).
_FAILED, _UNWRITTEN, _USAGE = 32, 24, 2


def _waiver(text):
    name, _, reason = text.partition("=")
    return name, reason


def _parser():
    parser = argparse.ArgumentParser("rubato conform", description="Checks elastic training: a sampler, a training loop, or a command "
                                     "that continues from checkpoints (docs/conformance.md).")
    parser.add_argument("target", metavar="MODULE:NAME", nargs="?", help="a function or a command in a module, which is looked for in "
                        "this folder first")
    parser.add_argument("--level", choices=["sampler", "loop", "process"], help="what it is [a list is a process, a function with a "
                        "parameter `job` a loop, any other one a sampler]")
    parser.add_argument("--last", choices=["short", "drop"], default="short", help="what happens to the last samples of an epoch")
    parser.add_argument("--schedule", choices=["steps", "samples", "epochs"], default="steps", help="what the schedule of rates counts")
    parser.add_argument("--batch", choices=["any", "fixed", "per-rank"], default="any", help="whether the batch depends on the ranks")
    parser.add_argument("--divisible", action="store_true", help="only batches that all ranks share equally")
    parser.add_argument("--flat", action="store_true", help="rates of one, for formats with few digits")
    parser.add_argument("--ranks", type=int, help="the most ranks [4; of a process 2]")
    parser.add_argument("--cases", type=int, help="the number of cases [200; of a process 6]")
    parser.add_argument("--case", metavar="CASE", help="one case, as a report prints it")
    parser.add_argument("--seed", type=int, help="draw other cases")
    parser.add_argument("--trace", metavar="FILE", help="parts of a trace as cases")
    parser.add_argument("--waive", metavar="CHECK=REASON", action="append", type=_waiver, default=[], help="a check that need not "
                        "pass, and why")
    parser.add_argument("--list", action="store_true", help="print the checks")
    return parser


def _target_of(text):
    module, _, name = text.partition(":")
    if not name:
        raise ValueError(f"'{text}' names no function; accepted: MODULE:NAME")
    sys.path.insert(0, os.getcwd())
    target = importlib.import_module(module)
    for part in name.split("."):
        target = getattr(target, part)
    return target


def _level_of(target):
    if isinstance(target, (str, list)):
        return "process"
    return "loop" if "job" in inspect.signature(target).parameters else "sampler"


def _told(text, code=0):
    """Prints a text, and returns the exit code: a check that fails counts more than a reader who has gone."""
    try:
        print(text, flush=True)
    except OSError as error:
        # Python would write what is left again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"rubato conform: cannot write the output: {error.strerror}", file=sys.stderr)
        return code or _UNWRITTEN
    return code


def main(arguments=None):
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.list:
        return _told("\n".join(f"{name:18}{check.demand}" for name, check in CHECKS.items()))
    if given.target is None:
        parser.error("missing MODULE:NAME")
    try:
        target = _target_of(given.target)
        level = given.level or _level_of(target)
        options = {word: getattr(given, word) for word in ("last", "case", "seed")} | {"waive": dict(given.waive)}
        options |= {word: getattr(given, word) for word in ("ranks", "cases") if getattr(given, word) is not None}
        if level != "sampler":
            options |= {"schedule": given.schedule, "flat": given.flat}
        if level != "process":
            options |= {"batch": given.batch, "divisible": given.divisible, "trace": given.trace and read_trace(given.trace)}
        check = {"sampler": check_sampler, "loop": check_loop, "process": check_resume}[level]
        report, code = check(target, **options), 0
    except NonConforming as found:
        report, code = found.report, _FAILED
    except (AttributeError, ImportError, OSError, ValueError) as error:
        print(f"rubato conform: {error}", file=sys.stderr)
        return _USAGE
    return _told(report, code)


if __name__ == "__main__":
    sys.exit(main())
