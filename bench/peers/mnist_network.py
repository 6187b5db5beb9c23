"""The network, the optimiser and the data that the peers train: those of the project's benchmark.

The network is the twin of mnist-cnn in docs/models.md.
"""

import torch
from torch import nn
from torch.nn import functional as F

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


class MnistNetwork(nn.Module):
    """[batch, 1, 28, 28] images to [batch, 10] log-probabilities."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.bn1 = nn.BatchNorm2d(10)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.bn2 = nn.BatchNorm2d(20)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = self.bn1(F.relu(F.max_pool2d(self.conv1(x), 2)))
        x = self.bn2(F.relu(F.max_pool2d(self.conv2(x), 2)))
        x = F.relu(self.fc1(x.flatten(1)))
        return F.log_softmax(self.fc2(x), dim=1)


def network(layout):
    """A network whose weights, and with them its activations, have the memory layout."""
    return MnistNetwork().to(memory_format=LAYOUTS[layout])


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)


def minibatches(size, layout, images=4096, seed=1):
    """Endless minibatches of random data. It lies in memory, and a minibatch is a view of it: the
    peers neither read, nor convert, nor gather anything."""
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn(images, 1, 28, 28, generator=generator)
    data = data.contiguous(memory_format=LAYOUTS[layout])
    labels = torch.randint(10, (images,), generator=generator)
    while True:
        for first in range(0, images - size + 1, size):
            yield data[first : first + size], labels[first : first + size]


def train(model, optimizer, batches, steps):
    """Trains whole steps; the gradients are all-reduced in backward() when the model is DDP's."""
    for _ in range(steps):
        images, labels = next(batches)
        optimizer.zero_grad(set_to_none=True)
        F.nll_loss(model(images), labels).backward()
        optimizer.step()
