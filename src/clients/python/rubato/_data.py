"""Data of the user's own as tensors of the same memory, where they are dense."""

import warnings

import torch

from . import _dataset
from ._rubato import Error

_ACCEPTED = ("accepted: (inputs, targets), each a tensor, an array or a list of these, a Dataset or DataLoader of "
             "torch.utils.data, or the name of a data set")


def _tensor(value, name):
    """A tensor of the same memory, where it is dense and on the CPU."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
    elif hasattr(value, "__array__"):
        import numpy

        array = numpy.asarray(value)
        if array.dtype.byteorder == ">" or any(stride < 0 for stride in array.strides):
            array = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        try:
            with warnings.catch_warnings():
                # That it may not be written to: nobody does.
                warnings.simplefilter("ignore", UserWarning)
                tensor = torch.from_numpy(array)
        except TypeError as error:
            raise Error(f"{name}: {error}") from None
    else:
        raise Error(f"{name}: {type(value).__name__} is no data; {_ACCEPTED}")
    if tensor.device.type != "cpu":
        raise Error(f"{name}: a tensor on {tensor.device}; accepted: tensors on the CPU")
    if tensor.layout != torch.strided:
        raise Error(f"{name}: a tensor of layout {tensor.layout}; accepted: dense tensors")
    return tensor


def tensor_list(value, name):
    """A list of tensors, of one value or several."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise Error(f"{name}: there are none; {_ACCEPTED}")
        return [_tensor(one, name) for one in value]
    return [_tensor(value, name)]


def tensors_of(data, name):
    """Lists of the tensors of inputs and of targets."""
    if isinstance(data, torch.utils.data.TensorDataset):
        if len(data.tensors) < 2:
            raise Error(f"{name}: a TensorDataset without targets; {_ACCEPTED}")
        return tensor_list(list(data.tensors[:-1]), name), tensor_list(data.tensors[-1], name)
    if _dataset.is_one(data):
        inputs, targets = _dataset.tensors_of(data, name)
        return tensor_list(inputs, name), tensor_list(targets, name)
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise Error(f"{name}: {type(data).__name__} is no data; {_ACCEPTED}")
    return tensor_list(data[0], f"{name}, inputs"), tensor_list(data[1], f"{name}, targets")

