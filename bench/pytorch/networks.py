"""The networks, the optimiser and the data of the peers, which are those of the project's benchmarks.

The networks are those of bench/models.hpp: rubato.models, from this checkout.
"""

import types
from pathlib import Path

import torch
from torch.nn import functional as F

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def _load_models():
    """rubato.models without the package around it, which need not be built here."""
    file = Path(__file__).resolve().parents[2] / "src/clients/python/rubato/models.py"
    module = types.ModuleType("rubato_models")
    source = file.read_text(encoding="utf-8").replace("from ._rubato import Error\n", "Error = ValueError\n")
    exec(compile(source, str(file), "exec"), module.__dict__)
    return module


_models = _load_models()

# large-mlp is the network of `rubato train --model mlp:hidden=4096/5376`, with 25.3 million parameters.
NETWORKS = {
    "mnist-cnn": _models.MnistNetwork,
    "residual-20": lambda: _models.ResNet20(16, 1),
    "wide-mlp": lambda: _models.Mlp((784, 1024, 1024, 10)),
    "large-mlp": lambda: _models.Mlp((784, 4096, 5376, 10)),
    "transformer": lambda: _models.Transformer(28, 28, 10),
}


def network(name, layout):
    """A network whose weights, and with them its activations, have the memory layout."""
    return NETWORKS[name]().to(memory_format=LAYOUTS[layout])


def layouts_of(name):
    """The memory layouts that make a difference to a network."""
    return list(LAYOUTS) if name in ("mnist-cnn", "residual-20") else ["contiguous"]


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)


def minibatches(size, layout, images=4096, seed=1):
    """Endless minibatches of random data. Each is a view of data in memory, so the peers neither read,
    nor convert, nor gather anything."""
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn(images, 1, 28, 28, generator=generator)
    data = data.contiguous(memory_format=LAYOUTS[layout])
    labels = torch.randint(10, (images,), generator=generator)
    while True:
        for first in range(0, images - size + 1, size):
            yield data[first : first + size], labels[first : first + size]


def train(model, optimizer, batches, steps):
    """Trains whole steps; a model of DDP all-reduces the gradients in backward()."""
    for _ in range(steps):
        images, labels = next(batches)
        optimizer.zero_grad(set_to_none=True)
        F.nll_loss(model(images), labels).backward()
        optimizer.step()
