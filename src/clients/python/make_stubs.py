"""Writes the type stubs of the built package to the file that is named: rubato.pyi.in with the options of the table."""

import inspect
import sys
from pathlib import Path

# The package that was built, and not its sources beside this script.
sys.path = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]

import rubato  # noqa: E402
from rubato import _options  # noqa: E402


def keywords(function):
    """A line for each keyword argument of the table."""
    by_word = {_options.keyword(option["name"]): option for option in _options.TABLE}
    # Parameters of the function itself are written by hand.
    code = function.__code__
    own = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    words = [word for word in inspect.signature(function).parameters if word in by_word and word not in own]
    # Each option of simulate() may be a list of values.
    return [f"    {word}: {'Any' if function is rubato.simulate else _options.annotation(by_word[word])} = None,"
            for word in words]


def stubs():
    text = (Path(__file__).parent / "rubato.pyi.in").read_text(encoding="utf-8")
    for function in (rubato.train, rubato.plan, rubato.simulate):
        text = text.replace(f"@{function.__name__}@", "\n".join(keywords(function)))
    return text


if __name__ == "__main__":
    target = Path(sys.argv[1])
    part = target.with_suffix(".part")
    part.write_text(stubs(), encoding="utf-8")
    # Not through a link, as older build folders have one to the sources.
    part.replace(target)
