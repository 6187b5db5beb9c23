"""Elastic data-parallel training, emulated on one workstation (docs/python.md).

    import rubato
    result = rubato.train("mnist-cnn", "digits", rule="adascale", cores=8, epochs=2)
    print(result.test_accuracy, result.sha256)

torch and the core are loaded when the first of these names is used: rubato.conformance needs neither.
"""

import importlib
import importlib.util
import warnings

# What makes the core slow, for a warning when it is used. An installation of rubato.conformance alone has no core.
_slow = None
if importlib.util.find_spec(f"{__name__}._machine"):
    from . import _kernels

    _slow = _kernels.prepare()

__all__ = ["AdaScale", "Availability", "Columns", "Comparison", "Diverged", "Epoch", "Error", "Hosts",
           "OutOfMemory", "OutputError", "Run", "TargetMissed", "Trace", "TrainResult", "TrainingError", "compare", "models",
           "plan", "simulate", "train"]


def __getattr__(name):
    if name == "conformance":
        return importlib.import_module(".conformance", __name__)
    global _slow
    if name != "_core" and (name == "__version__" or not name.startswith("__")):
        if _slow:
            warnings.warn(_slow, RuntimeWarning, stacklevel=2)
            _slow = None
        # Its imports make attributes of the package, too.
        core = importlib.import_module("._core", __name__)
        for names in (globals(), vars(core)):
            if name in names:
                return globals().setdefault(name, names[name])
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *__all__, "__version__"})
