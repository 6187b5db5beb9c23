"""The options of a run as keyword arguments: `ref_batch=256` is --ref-batch 256."""

import difflib
import inspect
import numbers
import os
import textwrap
from collections.abc import Mapping

from . import _rubato

# Options of the command line that Python does not have, with the reason.
_NOT_HERE = {option["name"]: option["not_here"] for option in _rubato.options() if option["not_here"]}

#: Options of Python, in the order of docs/options.md.
TABLE = [option for option in _rubato.options() if option["name"] not in _NOT_HERE]
_BY_NAME = {option["name"]: option for option in TABLE}


def keyword(name):
    """The keyword of an option: ref-batch becomes ref_batch."""
    return name.replace("-", "_")


def option_name(word, caller, names=None):
    """The option that a keyword argument of `caller` names; raises TypeError if there is none."""
    name = word.replace("_", "-")
    known = list(_BY_NAME) if names is None else names
    if name in known and "-" not in word:
        return name
    if name in _NOT_HERE:
        raise TypeError(f"{caller}(): {word}: {_NOT_HERE[name]}")
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {keyword(near[0])}?" if near else ""
    raise TypeError(f"{caller}() got an unexpected keyword argument '{word}'{meant}")


def takes_mapping(option):
    """Whether the text of an option is such as "NAME=samples,...", and its value in Python may be a mapping."""
    return option["value"].endswith(",...") and option["value"].count("=") == 1


def text_of(word, value):
    """The text of a value, as the command line has it."""
    if isinstance(value, Mapping) and takes_mapping(_BY_NAME.get(word.replace("_", "-"), {"value": ""})):
        return ",".join(f"{key}={text_of(f'{word}[{key!r}]', one)}" for key, one in value.items())
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    raise TypeError(f"{word}: it is of type {type(value).__name__}; accepted: a number, text, True or False")


def texts_of(caller, options, names=None):
    """(name, text) of each option that is not None."""
    return sorted([(option_name(word, caller, names), text_of(word, value))
                   for word, value in options.items() if value is not None], key=plugin_first)


def plugin_first(option):
    """A sort key: a plug-in comes before the options that name its contents."""
    return option[0] != "plugin"


_TYPES = {"flag": "bool", "whole": "int", "real": "float", "text": "str", "text_or_number": "str | float"}


def annotation(option):
    """The type of an option, for type checkers."""
    types = _TYPES[option["kind"]] + (" | PathLike[str]" if option["names_file"] else "")
    if takes_mapping(option):
        types += " | Mapping[str, str | float]"
    # train() takes a state_dict, too.
    return f"{types}{' | dict[str, Tensor]' if option['name'] == 'weights' else ''} | None"


def entry(option):
    """The docstring of an option."""
    said = f" [{option['default']}]" if option["default"] else ""
    text = f"{option['help']}{said}"
    return f"{keyword(option['name'])}:\n" + textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    ",
                                                          break_on_hyphens=False)


def describe(function, names=None):
    """Gives `function`, which ends with **options, the signature and the docstring of the table."""
    options = [option for option in TABLE if names is None or option["name"] in names]
    own = inspect.signature(function)
    kept = [parameter for parameter in own.parameters.values() if parameter.kind != inspect.Parameter.VAR_KEYWORD]
    options = [option for option in options if keyword(option["name"]) not in own.parameters]
    kept += [inspect.Parameter(keyword(option["name"]), inspect.Parameter.KEYWORD_ONLY, default=None)
             for option in options]
    function.__signature__ = own.replace(parameters=kept)
    groups = {}
    for option in options:
        groups.setdefault(option["group"], []).append(entry(option))
    text = [inspect.cleandoc(function.__doc__)]
    for group, entries in groups.items():
        text.append("\n".join([group, "-" * len(group), *entries]))
    function.__doc__ = "\n\n".join(text) + "\n"
    return function
