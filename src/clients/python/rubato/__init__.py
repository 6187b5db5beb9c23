"""Elastic data-parallel training, emulated on one workstation (docs/python.md).

    import rubato
    result = rubato.train("mnist-cnn", "digits", rule="adascale", cores=8, epochs=2)
    print(result.test_accuracy, result.sha256)
"""

import atexit

from . import _kernels

_kernels.prepare()

import torch  # noqa: E402: the kernels are chosen before

from . import _rubato, models  # noqa: E402
from ._adascale import AdaScale  # noqa: E402
from ._compare import Comparison, compare  # noqa: E402
from ._hosts import Hosts  # noqa: E402
from ._plan import Epoch, plan, simulate  # noqa: E402
from ._result import Columns, TrainResult  # noqa: E402
from ._rubato import Error, OutOfMemory, OutputError, TrainingError, __version__  # noqa: E402
from ._trace import Availability, Trace  # noqa: E402
from ._train import Diverged, TargetMissed, train  # noqa: E402

Error.__doc__ = "An error that a user or a file can cause, with the text of the command line. The base of all other errors."
OutputError.__doc__ = "Output that could not be written, such as to a full disk."
OutOfMemory.__doc__ = "Memory that could not be allocated."
TrainingError.__doc__ = "An exception of the model, the loss or libtorch in training, with its place."

# A training that is under way on another thread ends before the interpreter does.
atexit.register(_rubato.end_training)

__all__ = ["AdaScale", "Availability", "Columns", "Comparison", "Diverged", "Epoch", "Error", "Hosts",
           "OutOfMemory", "OutputError", "TargetMissed", "Trace", "TrainResult", "TrainingError", "compare", "models", "plan",
           "simulate", "train"]
