"""Users' data: tensors of the same memory if they are dense, and data sets, which are read once."""

import torch
from torch.utils.data import (DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler,
                              WeightedRandomSampler)

from ._rubato import Error

_ACCEPTED = ("accepted: (inputs, targets), each a tensor, an array or a list of these, a Dataset or DataLoader of "
             "torch.utils.data, or the name of a data set")
# Samples of a data set at a time, unless a DataLoader says otherwise.
_BATCH = 256


class _Writable:
    """A read-only array as a writable one: torch.from_numpy() warns of read-only ones, once in a process. The memory is
    never written to."""

    def __init__(self, array):
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self._array = array


def _tensor(value, name):
    """A tensor of the same memory. Raises Error unless it is dense and on the CPU."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
    elif hasattr(value, "__array__"):
        import numpy

        if numpy.ma.is_masked(value):
            raise Error(f"{name}: {numpy.ma.count_masked(value)} of its numbers are masked, which a tensor cannot express; "
                        "accepted: an array without a mask, such as array.filled(0)")
        array = numpy.asarray(value)
        if array.dtype.byteorder == ">" or any(stride < 0 for stride in array.strides):
            array = numpy.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        if not array.flags.writeable:
            array = numpy.asarray(_Writable(array))
        try:
            tensor = torch.from_numpy(array)
        except TypeError as error:
            raise Error(f"{name}: {error}") from None
    else:
        raise Error(f"{name}: {type(value).__name__} is not data; {_ACCEPTED}")
    if tensor.device.type != "cpu":
        raise Error(f"{name}: a tensor on {tensor.device}; accepted: tensors on the CPU")
    if tensor.layout != torch.strided:
        raise Error(f"{name}: a tensor of layout {tensor.layout}; accepted: dense tensors")
    return tensor


def tensor_list(value, name):
    """A list of the tensors of one value or several."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise Error(f"{name}: the list is empty; {_ACCEPTED}")
        return [_tensor(one, name) for one in value]
    return [_tensor(value, name)]


def _in_order(data, name):
    """A loader of the samples in the order of their data set."""
    if not isinstance(data, DataLoader):
        return DataLoader(data, batch_size=_BATCH)
    if isinstance(data.dataset, IterableDataset):
        return data
    shuffled = isinstance(data.sampler, RandomSampler) and not data.sampler.replacement
    if data.batch_size is None or not (shuffled or isinstance(data.sampler, SequentialSampler)):
        raise Error(f"{name}: a DataLoader with a sampler of its own, which training would not follow; accepted: one with "
                    "batch_size and shuffle alone, a Subset, or tensors; weights of samples are given as sampler=WEIGHTS")
    return DataLoader(data.dataset, batch_size=data.batch_size, collate_fn=data.collate_fn, num_workers=data.num_workers)


def _parts(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _pair(batch, name):
    """Lists of the tensors of inputs and of targets of a batch: the last element is the targets."""
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        raise Error(f"{name}: samples are of type {type(batch).__name__}; accepted: (inputs, targets), or several inputs and "
                    "then the targets")
    inputs = [tensor for value in batch[:-1] for tensor in _parts(value)]
    pair = inputs, _parts(batch[-1])
    for value in pair[0] + pair[1]:
        if not isinstance(value, torch.Tensor):
            raise Error(f"{name}: a part of the samples is of type {type(value).__name__}; accepted: tensors, arrays and "
                        "numbers")
    return pair


def _joined(batches, name):
    if not batches:
        raise Error(f"{name}: there is no sample")
    try:
        return [torch.cat(parts) for parts in zip(*batches)]
    except RuntimeError as error:
        raise Error(f"{name}: samples differ in shape or type ({error}); accepted: samples of one shape") from None


def _read(data, name):
    """Lists of the tensors of inputs and of targets: all samples, in the order of the data set. It may draw
    random numbers; the generator is restored."""
    with torch.random.fork_rng(devices=[]):
        try:
            pairs = [_pair(batch, name) for batch in _in_order(data, name)]
        except (TypeError, RuntimeError) as error:
            if isinstance(error, Error):
                raise
            raise Error(f"{name}: cannot be read: {str(error).splitlines()[0]}; accepted: samples of tensors, arrays and "
                        "numbers, of one shape") from error
    return _joined([inputs for inputs, _ in pairs], name), _joined([targets for _, targets in pairs], name)


def tensors_of(data, name):
    """Lists of the tensors of inputs and of targets."""
    if isinstance(data, torch.utils.data.TensorDataset):
        if len(data.tensors) < 2:
            raise Error(f"{name}: a TensorDataset without targets; {_ACCEPTED}")
        return tensor_list(list(data.tensors[:-1]), name), tensor_list(data.tensors[-1], name)
    if isinstance(data, (Dataset, DataLoader)):
        inputs, targets = _read(data, name)
        return tensor_list(inputs, name), tensor_list(targets, name)
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise Error(f"{name}: {type(data).__name__} is not data; {_ACCEPTED}")
    return tensor_list(data[0], f"{name}, inputs"), tensor_list(data[1], f"{name}, targets")



def sampler_of(sampler):
    """(the text of a sampler, the weights of its samples or None) of what train() takes."""
    if sampler is None or isinstance(sampler, str):
        return sampler, None
    if isinstance(sampler, WeightedRandomSampler):
        draws, samples = sampler.num_samples, len(sampler.weights)
        if not sampler.replacement or draws != samples:
            raise Error(f"sampler: {draws} draws from {samples} samples with{'' if sampler.replacement else 'out'} replacement; "
                        "accepted: as many draws as samples, with replacement")
        sampler = sampler.weights
    if isinstance(sampler, (list, tuple)):
        try:
            sampler = torch.tensor(sampler, dtype=torch.float64)
        except (TypeError, ValueError) as error:
            raise Error(f"sampler: {error}; accepted: a list of numbers") from None
    if not isinstance(sampler, torch.Tensor) and not hasattr(sampler, "__array__"):
        raise TypeError(f"sampler: it is of type {type(sampler).__name__}; accepted: the name of a sampler, a tensor or an "
                        "array of weights, or a WeightedRandomSampler")
    weights = _tensor(sampler, "sampler")
    if weights.dim() != 1 or weights.is_complex():
        raise Error(f"sampler: {weights.dtype} of shape {list(weights.shape)}; accepted: one weight for each training sample")
    return "own", weights.to(torch.float64).tolist()
