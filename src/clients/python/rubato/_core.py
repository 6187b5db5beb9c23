"""The names of the package that need torch and the core, which are loaded here."""

import atexit

import torch

from . import _rubato, models  # noqa: F401: names of the package
from ._adascale import AdaScale  # noqa: F401
from ._compare import Comparison, compare  # noqa: F401
from ._hosts import Hosts  # noqa: F401
from ._plan import Epoch, plan, simulate  # noqa: F401
from ._result import Columns, Run, TrainResult  # noqa: F401
from ._rubato import Error, OutOfMemory, OutputError, TrainingError, __version__  # noqa: F401
from ._trace import Availability, Trace  # noqa: F401
from ._train import Diverged, TargetMissed, train  # noqa: F401

Error.__doc__ = "An error that a user or a file can cause, with the text of the command line. The base of all other errors."
OutputError.__doc__ = "Output that could not be written, such as to a full disk."
OutOfMemory.__doc__ = "Memory that could not be allocated."
TrainingError.__doc__ = "An exception of the model, the loss or libtorch in training, with its place."

# A training that is under way on another thread ends before the interpreter does.
atexit.register(_rubato.end_training)
