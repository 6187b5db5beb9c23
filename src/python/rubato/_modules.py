"""Models and losses of the user's own as TorchScript, whose bytes cross to C++."""

import inspect
import io

import torch

from ._rubato import Error

# What a trace would fix in the mode in which it is made.
_BY_MODE = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd,
            torch.nn.modules.instancenorm._InstanceNorm)


def bytes_of(module):
    """What torch.jit.save() writes."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    return buffer.getvalue()


def _reason(error):
    """The first words of an error that say something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _traced(model, inputs):
    modal = [name or "the model" for name, part in model.named_modules() if isinstance(part, _BY_MODE)]
    if modal:
        raise Error(f"{modal[0]} does another thing in training than in evaluation, and a trace would do one alone")
    with torch.enable_grad():
        return torch.jit.trace(model, tuple(inputs))


def scripted(model, inputs):
    """A ScriptModule of the module: scripted, or else traced with a minibatch of inputs."""
    if isinstance(model, torch.jit.ScriptModule):
        return model
    if not isinstance(model, torch.nn.Module):
        raise Error(f"model: {type(model).__name__} is no model; accepted: a torch.nn.Module, a ScriptModule, or "
                    "the name of a model")
    try:
        return torch.jit.script(model)
    except Exception as error:  # noqa: BLE001: whatever TorchScript's compiler raises
        not_scripted = error
    try:
        return _traced(model, inputs())
    except Error as error:
        raise Error(f"the model cannot be scripted ({_reason(not_scripted)})\n"
                    f"nor traced ({error}); accepted: one that can") from not_scripted
    except Exception as error:  # noqa: BLE001: whatever the model raises
        raise Error(f"the model cannot be scripted ({_reason(not_scripted)})\n"
                    f"nor traced with a minibatch ({_reason(error)}); accepted: one that can") from not_scripted


class _LossOfFunction(torch.nn.Module):
    """A function of one output and one target, with its further arguments as they are by default: a function that is
    saved by itself forgets them."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, output: torch.Tensor, target: torch.Tensor):
        return self.function(output, target)


def _required(function):
    """How many arguments it takes that have no default."""
    if isinstance(function, torch.jit.ScriptFunction):
        return sum(not argument.has_default_value() for argument in function.schema.arguments)
    return sum(parameter.default is parameter.empty for parameter in inspect.signature(function).parameters.values())


def loss_of(loss):
    """The bytes of TorchScript."""
    if not callable(loss):
        raise Error(f"loss: {type(loss).__name__} is no loss; accepted: the name of one, or a function or module of "
                    "outputs and targets")
    try:
        if not isinstance(loss, torch.nn.Module) and _required(loss) <= 2:
            loss = _LossOfFunction(torch.jit.script(loss))
        return bytes_of(torch.jit.script(loss))
    except Exception as error:  # noqa: BLE001: whatever TorchScript's compiler raises
        raise Error(f"the loss cannot be scripted ({_reason(error)}); accepted: one that TorchScript can compile "
                    "(https://pytorch.org/docs/1.13/jit.html)") from error
