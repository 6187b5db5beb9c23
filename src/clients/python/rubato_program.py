"""The command `rubato` of an installed package: becomes the program itself, without loading the package."""

import importlib.util
import os
import sys


def main():
    folder = importlib.util.find_spec("rubato").submodule_search_locations[0]
    # `rubato conform` runs this Python, which sees the package.
    os.environ.setdefault("RUBATO_PYTHON", sys.executable)
    program = os.path.join(folder, "bin", "rubato")
    os.execv(program, [program, *sys.argv[1:]])
