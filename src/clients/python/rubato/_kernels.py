"""Chooses the kernels of OpenBLAS, ATen and oneDNN before libtorch is loaded (docs/kernels.md).

If OpenBLAS would choose kernels that are slow on this CPU, the command `rubato` restarts itself with other environment
variables. Python cannot, so the variables are set here, before libtorch is loaded.
"""

import ctypes
import os
import subprocess
import sys

from . import _machine

# Debian's libtorch and numpy link this library, whichever BLAS it is.
_BLAS = "libblas.so.3"

# Prints the core whose kernels OpenBLAS takes by itself, and how it was built.
_QUESTION = f"""
import ctypes
blas = ctypes.CDLL({_BLAS!r})
for name in ("openblas_get_corename", "openblas_get_config"):
    function = getattr(blas, name)
    function.restype = ctypes.c_char_p
    print(function().decode())
"""

# Variable from which summary.json takes the core that OpenBLAS chose by itself.
_MARKER = "RUBATO_STARTED_AGAIN"


def _loaded_openblas():
    """The core and the configuration of the OpenBLAS of this process; None if there is none yet."""
    try:
        blas = ctypes.CDLL(_BLAS, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        answers = []
        for name in ("openblas_get_corename", "openblas_get_config"):
            function = getattr(blas, name)
            function.restype = ctypes.c_char_p
            answers.append(function().decode())
        return answers
    except (OSError, AttributeError):
        return None


def _openblas_of_another_process():
    """The same of another process; None if there is no OpenBLAS."""
    try:
        answer = subprocess.run([sys.executable, "-I", "-S", "-c", _QUESTION], capture_output=True, check=True,
                                text=True, timeout=20).stdout.splitlines()
    except (OSError, TypeError, ValueError, subprocess.SubprocessError):
        return None
    return answer if len(answer) == 2 else None


def prepare():
    """Sets the environment variables for the wanted kernels. Returns None or, if it is too late, the text of a warning.

    RUBATO_KERNELS=portable in the environment limits all of them to AVX2 and FMA, as --kernels portable does; by
    default only OpenBLAS is corrected, if it would choose kernels of a lesser instruction set than the CPU has.
    """
    kernels = os.environ.get("RUBATO_KERNELS", "native")
    if kernels == "native" and os.environ.get("OPENBLAS_CORETYPE"):
        return None
    openblas = _loaded_openblas()
    too_late = openblas is not None or "torch" in sys.modules
    core, config = openblas or (not too_late and _openblas_of_another_process()) or ("", "")
    try:
        variables = _machine.kernel_variables(kernels, core, config)
    except ValueError as error:
        raise ValueError(f"RUBATO_KERNELS={kernels}: {error}") from None
    if not variables:
        return None
    if not too_late:
        os.environ.update(variables)
        os.environ[_MARKER] = f"{kernels}:{core}"
        return None
    wanted = " ".join(f"{name}={value}" for name, value in variables)
    what = (f"OpenBLAS was loaded before rubato and computes with its {core} kernels, which are slower on this CPU"
            if kernels == "native" else "libtorch was loaded before rubato, without portable kernels")
    return f"{what}; import rubato before numpy and torch, or start Python with {wanted}"
