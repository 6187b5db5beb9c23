"""Users' models as TorchScript, whose bytes are passed to C++."""

import copy
import io
import re

import torch

from ._rubato import Error


def bytes_of(module):
    """The bytes that torch.jit.save() writes."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    return buffer.getvalue()


def _place(lines):
    """The place in the user's source to which TorchScript's compiler points, for people; empty if there is none."""
    file = next((found for found in (re.match(r'\s*File "(.*)", line (\d+)', line) for line in lines) if found), None)
    if file is None:
        return ""
    marked = next((i for i, line in enumerate(lines) if "<--- HERE" in line), None)
    source = "" if marked is None else f": {lines[marked - 1].strip()}"
    return f", at {file[1]}, line {file[2]}{source}"


def reason(error):
    """The message of an error of TorchScript, without the lists and the sources around it."""
    if "undefined Tensor" in str(error):
        return "an argument whose default is None has no type; accepted: typing.Optional[torch.Tensor]"
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # The expected type comes after the signatures of the functions that were called.
    said = next((line for line in lines if re.match(r"\s*(Expected a value|Unknown keyword|Argument)\b", line)
                 and "Arguments for call" not in line), lines[0]).strip().rstrip(" :.")
    place = _place(lines)
    return said + place if place else f"{type(error).__name__}: {said}"


def _deep_copy(model):
    """A deep copy. Python does not copy weights that a hook computes from parameters (torch.nn.utils.weight_norm); the
    hook recomputes those of the copy."""
    computed = {id(tensor): tensor.detach().clone() for module in model.modules() for tensor in vars(module).values()
                if isinstance(tensor, torch.Tensor) and not tensor.is_leaf}
    return copy.deepcopy(model, computed)


def _trace_in_mode(model, inputs, training):
    """A trace of a copy, so that running the model changes only the buffers of the copy."""
    copied = _deep_copy(model).train(training)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        return torch.jit.trace(copied, tuple(tensor.clone() for tensor in inputs), check_trace=False, strict=False)


def _graph(traced):
    """The graph of a trace as text, without places in the sources and the suffixes of classes of the same name."""
    return re.sub(r"___torch_mangle_\d+\.", "", torch._C._jit_pass_canonicalize(traced.inlined_graph).str(False))


def _hooks(model):
    """(name of its module, name of the hook) of each hook of forward()."""
    return [(name, getattr(hook, "__name__", type(hook).__name__)) for name, module in model.named_modules()
            for hooks in (module._forward_pre_hooks, module._forward_hooks) for hook in hooks.values()]


def _spectral_norm(model):
    """The name of a module whose weight is under one of torch's two spectral norms; None if there is none."""
    hooked = [name for name, hook in _hooks(model) if hook == "SpectralNorm"]
    parametrized = [name.split(".parametrizations.")[0] for name, module in model.named_modules()
                    if type(module).__name__ == "_SpectralNorm"]
    return next(iter(hooked + parametrized), None)


def _traced(model, inputs):
    trained = _trace_in_mode(model, inputs, training=True)
    if _graph(trained) != _graph(_trace_in_mode(model, inputs, training=False)):
        normed = _spectral_norm(model)
        who = "it computes" if normed is None else f"spectral_norm of '{normed}' computes"
        raise Error(f"{who} something else in training than in evaluation, and a trace would follow only one of them")
    before = dict(model.named_buffers())
    with torch.no_grad():
        for name, buffer in trained.named_buffers():
            buffer.copy_(before[name])
    return trained


def _parameter_type(model):
    return next((parameter.dtype for parameter in model.parameters() if parameter.requires_grad), torch.float32)


def _why_not_scripted(model, error):
    hooks = _hooks(model)
    if hooks and isinstance(error, AttributeError):
        name, hook = hooks[0]
        return f"'{name}' has the hook {hook}, which is not a TorchScript function"
    return reason(error)


def _gradient_hook(model):
    """The part that has a hook of its gradient, for people; None if there is none."""
    for kind, parts in (("module", model.named_modules()), ("parameter", model.named_parameters())):
        for name, part in parts:
            if part._backward_hooks or getattr(part, "_backward_pre_hooks", None):
                return f"{kind} '{name}'"
    return None


def _tensors_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for one in value for tensor in _tensors_in(one)]
    return [value] if isinstance(value, torch.Tensor) else []


def _pass(model, inputs):
    """Results and changes of a forward and a backward pass in training, by name; None if they fail."""
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            outputs = _tensors_in(model.train()(*(tensor.clone() for tensor in inputs)))
            # Every output has another weight, because a plain sum of probabilities has no gradient.
            sums = [(output * torch.arange(1, output.numel() + 1).reshape(output.shape).cos()).sum() for output in outputs
                    if output.requires_grad]
            if sums:
                sum(sums).backward()
    except Exception:  # noqa: BLE001: whatever the model raises; training says where
        return None
    found = {f"output {i}": output.detach() for i, output in enumerate(outputs)}
    for name, parameter in model.named_parameters():
        gradient = parameter.grad
        found[f"the gradient of '{name}'"] = gradient if gradient is None else gradient.to_dense()
        found[f"parameter '{name}' after forward()"] = parameter.detach()
    found |= {f"buffer '{name}' after forward()": buffer for name, buffer in model.named_buffers()}
    # Training itself refuses other tensors.
    return {name: tensor for name, tensor in found.items()
            if tensor is None or (tensor.layout == torch.strided and tensor.device.type == "cpu")}


def _are_close(one, other):
    if one is None or other is None:
        # A parameter that does not matter has a gradient of 0, or none.
        return all(tensor is None or not tensor.any() for tensor in (one, other))
    if one.shape != other.shape:
        return False
    if one.is_floating_point() or one.is_complex():
        return torch.allclose(one, other.to(one.dtype), rtol=1e-3, atol=1e-4, equal_nan=True)
    return torch.equal(one, other)


def _difference(one, other):
    """The first name whose tensors differ; None if there is none."""
    names = one.keys() | other.keys()
    return next((name for name in sorted(names) if not _are_close(one.get(name), other.get(name))), None)


def _require_same(model, script, inputs):
    """Finds what TorchScript ignores silently (decorators such as torch.no_grad(), max_norm, a user's train()) by a pass
    of both. Raises Error if they differ."""
    try:
        copies = [_deep_copy(model) for _ in range(2)]
    except Exception:  # noqa: BLE001: what cannot be copied cannot be tried
        return
    eager, scripted = _pass(copies[0], inputs), _pass(torch.jit.load(io.BytesIO(script)), inputs)
    if eager is None or scripted is None:
        return
    different = _difference(eager, scripted)
    if different is None:
        return
    if _difference(eager, _pass(copies[1], inputs) or eager) is not None:
        raise Error("the model gives different results with the same random numbers of torch; accepted: a model that "
                    "draws random numbers from torch only")
    raise Error(f"TorchScript does not compute what the model does in training: {different} differs; accepted: a model "
                "without what TorchScript leaves out, such as decorators (torch.no_grad()), max_norm and a train() of its own")


def transient_buffers(model):
    """The names of buffers that are registered with persistent=False, which are not in a state_dict."""
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        return []
    kept = model.state_dict()
    return [name for name, _ in model.named_buffers() if name not in kept]


def bytes_of_model(model, first_inputs):
    """The bytes of a ScriptModule of the module, which is left as it is: scripted, or else traced with the inputs that
    `first_inputs` returns for the type of its parameters."""
    if isinstance(model, torch.jit.ScriptModule):
        try:
            return bytes_of(model)
        except RuntimeError as error:
            raise Error(f"the model cannot be saved ({reason(error)}); accepted: what torch.jit.save() takes") from error
    if not isinstance(model, torch.nn.Module):
        raise Error(f"model: {type(model).__name__} is not a model; accepted: a torch.nn.Module, a ScriptModule, or "
                    "the name of a model")
    hooked = _gradient_hook(model)
    if hooked is not None:
        raise Error(f"{hooked} has a hook of its gradient, which TorchScript leaves out; accepted: a model without")
    inputs = first_inputs(_parameter_type(model))
    try:
        script = bytes_of(torch.jit.script(model))
    except Exception as error:  # noqa: BLE001: whatever TorchScript's compiler raises
        not_scripted = error
    else:
        _require_same(model, script, inputs)
        return script
    try:
        script = bytes_of(_traced(model, inputs))
        _require_same(model, script, inputs)
        return script
    except Error as error:
        not_traced = str(error)
    except Exception as error:  # noqa: BLE001: whatever the model raises
        not_traced = reason(error)
    raise Error(f"the model cannot be scripted ({_why_not_scripted(model, not_scripted)})\n"
                f"nor traced with a minibatch ({not_traced}); accepted: one that torch.jit.script() compiles") from not_scripted
