"""Users' losses as TorchScript: C++ calls them with all outputs, one by one, and then the targets."""

import inspect
import io

import torch

from . import _modules
from ._rubato import Error


class _LossOfFunction(torch.nn.Module):
    """A function of one output and one target, with defaults for its further arguments, which a function that is
    saved by itself forgets."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, output: torch.Tensor, target: torch.Tensor):
        return self.function(output, target)


class _Holder(torch.nn.Module):
    """Holds a loss until forward() is defined."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss


def _required(function):
    """The number of arguments without a default."""
    if isinstance(function, torch.jit.ScriptFunction):
        return sum(not argument.has_default_value() for argument in function.schema.arguments)
    return sum(parameter.default is parameter.empty for parameter in inspect.signature(function).parameters.values())


def _first_type(scripted):
    """The type of the first argument of a loss, as TorchScript writes it."""
    if isinstance(scripted, torch.jit.ScriptFunction):
        return str(scripted.schema.arguments[0].type)
    return str(scripted.forward.schema.arguments[1].type)


def _together(scripted, kind, outputs, targets):
    """Turns a loss that takes outputs as a dictionary, tuple or list into one that takes them one by one. `outputs` is the
    result of the model for a minibatch, and `targets` the number of targets."""
    if isinstance(outputs, torch.Tensor):
        raise Error(f"the loss takes {kind}, and the model returns a tensor; accepted: a loss of a tensor and the targets")
    names = [f"output{i}" for i in range(len(outputs))]
    if kind.startswith("Dict"):
        if not isinstance(outputs, dict):
            raise Error(f"the loss takes {kind}, and the model returns a {type(outputs).__name__}; accepted: one of that type")
        given = "{" + ", ".join(f"{key!r}: {name}" for key, name in zip(outputs, names)) + "}"
    else:
        given = f"({', '.join(names)},)" if kind.startswith("Tuple") else f"[{', '.join(names)}]"
    last = ", ".join(f"target{i}" for i in range(targets))
    module = torch.jit.script(_Holder(scripted))
    module.define(f"def forward(self, {', '.join(names)}, {last}):\n    return self.loss({given}, {last})\n")
    return module


def bytes_of_loss(loss, first_outputs, targets):
    """The bytes of a loss in TorchScript. `first_outputs` returns the outputs of the model for a minibatch, and is called
    if the loss takes outputs together; `targets` is the number of targets of a sample."""
    if not callable(loss):
        raise Error(f"loss: {type(loss).__name__} is not a loss; accepted: the name of one, or a function or module of "
                    "outputs and targets")
    try:
        scripted = torch.jit.script(loss)
        kind = _first_type(scripted)
        if kind.startswith(("Dict[", "Tuple[", "List[")):
            return _modules.bytes_of(_together(scripted, kind, first_outputs(), targets))
        if not isinstance(loss, torch.nn.Module) and _required(loss) <= 2:
            scripted = _LossOfFunction(scripted)
        return _modules.bytes_of(torch.jit.script(scripted))
    except Error:
        raise
    except Exception as error:  # noqa: BLE001: whatever TorchScript's compiler raises
        raise Error(f"the loss cannot be scripted: {_modules.reason(error)}\naccepted: one that TorchScript can compile "
                    "(https://pytorch.org/docs/1.13/jit.html)") from error


def outputs_of(script, inputs):
    """The result of the model in these bytes for inputs."""
    model = torch.jit.load(io.BytesIO(script)).eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        return model(*inputs)
