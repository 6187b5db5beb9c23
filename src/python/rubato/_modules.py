"""Models and losses of the user's own as TorchScript, whose bytes cross to C++."""

import copy
import inspect
import io
import re

import torch

from ._rubato import Error

def bytes_of(module):
    """What torch.jit.save() writes."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    return buffer.getvalue()


def _reason(error):
    """The first words of an error that say something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _trace_in_mode(model, inputs, training):
    """A trace of a copy: what a model does to its buffers when it runs, it does to those of the copy."""
    copied = copy.deepcopy(model).train(training)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        return torch.jit.trace(copied, tuple(tensor.clone() for tensor in inputs), check_trace=False)


def _graph(traced):
    """What a trace computes, as text: without the places in the sources, and what tells classes of one name apart."""
    return re.sub(r"___torch_mangle_\d+\.", "", torch._C._jit_pass_canonicalize(traced.inlined_graph).str(False))


def _traced(model, inputs):
    trained = _trace_in_mode(model, inputs, training=True)
    if _graph(trained) != _graph(_trace_in_mode(model, inputs, training=False)):
        raise Error("it computes something else in training than in evaluation, and a trace would do one alone")
    before = dict(model.named_buffers())
    with torch.no_grad():
        for name, buffer in trained.named_buffers():
            buffer.copy_(before[name])
    return trained


def _parameter_type(model):
    return next((parameter.dtype for parameter in model.parameters() if parameter.requires_grad), torch.float32)


def scripted(model, first_inputs):
    """A ScriptModule of the module, which is left as it is: scripted, or else traced with the inputs that
    `first_inputs` returns for the type of its parameters."""
    if isinstance(model, torch.jit.ScriptModule):
        return model
    if not isinstance(model, torch.nn.Module):
        raise Error(f"model: {type(model).__name__} is no model; accepted: a torch.nn.Module, a ScriptModule, or "
                    "the name of a model")
    try:
        return torch.jit.script(model)
    except Exception as error:  # noqa: BLE001: whatever TorchScript's compiler raises
        not_scripted = error
    inputs = first_inputs(_parameter_type(model))
    try:
        return _traced(model, inputs)
    except Error as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001: whatever the model raises
        reason = _reason(error)
    raise Error(f"the model cannot be scripted ({_reason(not_scripted)})\n"
                f"nor traced with a minibatch ({reason}); accepted: one that torch.jit.script() compiles") from not_scripted


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
