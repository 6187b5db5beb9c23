"""A torch.utils.data.Dataset or DataLoader, read once."""

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler

from ._rubato import Error

# Of samples at a time, where nobody says.
_BATCH = 256


def _in_order(data, name):
    """A loader of the samples in the order of their data set."""
    if not isinstance(data, DataLoader):
        return DataLoader(data, batch_size=_BATCH)
    if isinstance(data.dataset, IterableDataset):
        return data
    shuffled = isinstance(data.sampler, RandomSampler) and not data.sampler.replacement
    if data.batch_size is None or not (shuffled or isinstance(data.sampler, SequentialSampler)):
        raise Error(f"{name}: a DataLoader with a sampler of its own, which training would not follow; accepted: one with "
                    "batch_size and shuffle alone, a Subset, or tensors")
    return DataLoader(data.dataset, batch_size=data.batch_size, collate_fn=data.collate_fn, num_workers=data.num_workers)


def _parts(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _pair(batch, name):
    """Lists of the tensors of inputs and of targets of a batch: what comes last are the targets."""
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


def tensors_of(data, name):
    """Lists of the tensors of inputs and of targets: all samples, in the order of the data set. Random numbers that it
    draws are drawn this once, and leave the generator as it was."""
    with torch.random.fork_rng(devices=[]):
        try:
            pairs = [_pair(batch, name) for batch in _in_order(data, name)]
        except (TypeError, RuntimeError) as error:
            if isinstance(error, Error):
                raise
            raise Error(f"{name}: cannot be read: {str(error).splitlines()[0]}; accepted: samples of tensors, arrays and "
                        "numbers, of one shape") from error
    return _joined([inputs for inputs, _ in pairs], name), _joined([targets for _, targets in pairs], name)


def is_one(data):
    return isinstance(data, (Dataset, DataLoader))
