"""Builds the Python package by CMake; pyproject.toml has all else.

RUBATO_BUILD_DIR in the environment names a build folder to build it in, such as build/release; by default it is a
folder of its own, build/python.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
# What setuptools itself writes lies here, and not beside the sources.
SCRATCH = ROOT / "build" / "python-package"
SCRATCH.mkdir(parents=True, exist_ok=True)


def version():
    return re.search(r"project\(rubato VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


class Package(Distribution):
    """It has extension modules, so that a wheel is for one kind of machine."""

    def has_ext_modules(self):
        return True


class BuildByCMake(build_py):
    """Has CMake build the package, and install it where a wheel is made of it."""

    def run(self):
        super().run()
        folder = Path(os.environ.get("RUBATO_BUILD_DIR", ROOT / "build" / "python")).resolve()
        if not (folder / "CMakeCache.txt").exists():
            self.cmake("-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON",
                       "-DRUBATO_TESTS=OFF", "-DRUBATO_BENCH=OFF", "-DRUBATO_EXAMPLES=OFF", "-DRUBATO_PYTHON=ON",
                       f"-DPython3_EXECUTABLE={sys.executable}")
        self.cmake("--build", folder, "--target", "rubato_stubs", "rubato", "rubato-train")
        self.cmake("--install", folder, "--component", "wheel", "--prefix", Path(self.build_lib).resolve())

    @staticmethod
    def cmake(*arguments):
        subprocess.run(["cmake", *map(str, arguments)], check=True)


setup(
    version=version(),
    packages=["rubato", "rubato.conformance"],
    package_dir={"": "src/clients/python"},
    py_modules=["rubato_program", "rubato_pytest"],
    distclass=Package,
    cmdclass={"build_py": BuildByCMake},
    options={"build": {"build_base": str(SCRATCH)}, "egg_info": {"egg_base": str(SCRATCH)},
             "bdist_wheel": {"bdist_dir": str(SCRATCH / "wheel")}},
)
