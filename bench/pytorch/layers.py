#!/usr/bin/env python3
"""Prints a hash of the bits that libtorch computes for each layer, with the kernels of
`--kernels portable`: one column each for the output, the gradient of the input and that of the
weights. Layers whose rows are equal under two versions of libtorch are computed alike by both.

    bench/pytorch/layers.py >here; diff here there
"""

import os

PORTABLE = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
            "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT", "OPENBLAS_CORETYPE": "Haswell"}
os.environ.update(PORTABLE)  # must be set before the libraries are loaded

import hashlib

import torch
from torch import nn
from torch.nn import functional

BATCH = 32


def values(*shape):
    """Numbers in [-1/2, 1/2) that are the same under every version, as their arithmetic does not round."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count, dtype=torch.int64) * 40503 + 12345) % 65536 / 65536.0 - 0.5) \
        .to(torch.float32).reshape(shape)


def digest(tensors):
    if not tensors:
        return "-"
    sha = hashlib.sha256()
    for tensor in tensors:
        sha.update(tensor.detach().contiguous().numpy().tobytes())
    return sha.hexdigest()[:12]


LABELS = torch.arange(BATCH) % 10
# Each layer has a name, a module, the shape of its input, and a function that calls it if that takes more.
LAYERS = [
    ("Linear 784-128", nn.Linear(784, 128), (BATCH, 784), None),
    ("Linear 128-10", nn.Linear(128, 10), (BATCH, 128), None),
    ("Conv2d 1-10, 5x5", nn.Conv2d(1, 10, 5), (BATCH, 1, 28, 28), None),
    ("Conv2d 10-20, 5x5", nn.Conv2d(10, 20, 5), (BATCH, 10, 12, 12), None),
    ("Conv2d 16-16, 3x3", nn.Conv2d(16, 16, 3, padding=1, bias=False), (BATCH, 16, 28, 28), None),
    ("Conv2d 16-32, 1x1, stride 2", nn.Conv2d(16, 32, 1, stride=2, bias=False),
     (BATCH, 16, 28, 28), None),
    ("BatchNorm2d 16", nn.BatchNorm2d(16), (BATCH, 16, 28, 28), None),
    ("LayerNorm 64", nn.LayerNorm(64), (BATCH, 16, 64), None),
    ("MultiheadAttention 64, 4 heads", nn.MultiheadAttention(64, 4, batch_first=True),
     (BATCH, 16, 64),
     lambda layer, x: layer(x, x, x, need_weights=False)[0]),
    ("MaxPool2d 2", nn.MaxPool2d(2), (BATCH, 10, 24, 24), None),
    ("AdaptiveAvgPool2d 1", nn.AdaptiveAvgPool2d(1), (BATCH, 64, 7, 7), None),
    ("ReLU", nn.ReLU(), (BATCH, 784), None),
    ("GELU", nn.GELU(), (BATCH, 784), None),
    ("Tanh", nn.Tanh(), (BATCH, 784), None),
    ("Sigmoid", nn.Sigmoid(), (BATCH, 784), None),
    ("softmax of 64", nn.Softmax(dim=-1), (BATCH, 64), None),
    ("mean", None, (BATCH, 784), lambda _, x: x.mean(dim=1)),
    ("cross entropy of 10 classes", None, (BATCH, 10),
     lambda _, x: functional.cross_entropy(x, LABELS)),
]


def row(name, layer, shape, call):
    weights = list(layer.parameters()) if layer is not None else []
    with torch.no_grad():
        for weight in weights:
            weight.copy_(values(*weight.shape) / 8)
    inputs = values(*shape).requires_grad_()
    output = call(layer, inputs) if call else layer(inputs)
    output.backward(values(*output.shape) if output.dim() else torch.tensor(1.0))
    grads = [weight.grad for weight in weights]
    return f"{name:32}{digest([output]):14}{digest([inputs.grad]):14}{digest(grads)}"


def main():
    torch.set_num_threads(1)
    print(f"{'libtorch ' + torch.__version__.split('+')[0]:32}{'output':14}{'input':14}weights")
    for layer in LAYERS:
        print(row(*layer))


if __name__ == "__main__":
    main()
