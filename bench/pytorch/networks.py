"""The networks, the optimiser and the data of the peers, which are those of the project's benchmarks.

The networks are the same as those in bench/models.hpp.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


class MnistNetwork(nn.Module):
    """mnist-cnn: [batch, 1, 28, 28] images to [batch, 10] log-probabilities."""

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


def convolution(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = convolution(inputs, outputs, 3, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = convolution(outputs, outputs, 3, 1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = convolution(inputs, outputs, 1, stride)
            self.shortcut_bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut_bn(self.shortcut(x))))


class Residual20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = convolution(1, 16, 3, 1)
        self.bn = nn.BatchNorm2d(16)
        blocks, channels = [], 16
        for outputs in (16, 32, 64):
            for _ in range(3):
                blocks.append(Block(channels, outputs, 1 if outputs == channels else 2))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn(self.conv(x))))
        return F.log_softmax(self.fc(x.mean((2, 3))), dim=1)


class WideMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 1024)
        self.fc2 = nn.Linear(1024, 1024)
        self.fc3 = nn.Linear(1024, 10)

    def forward(self, x):
        x = F.relu(self.fc2(F.relu(self.fc1(x.flatten(1)))))
        return F.log_softmax(self.fc3(x), dim=1)


class LargeMlp(nn.Module):
    """The network of `rubato train --model mlp:hidden=4096/5376`, with 25.3 million parameters."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 4096)
        self.fc2 = nn.Linear(4096, 5376)
        self.fc3 = nn.Linear(5376, 10)

    def forward(self, x):
        x = F.relu(self.fc2(F.relu(self.fc1(x.flatten(1)))))
        return F.log_softmax(self.fc3(x), dim=1)


class EncoderLayer(nn.Module):
    FEATURES, HEADS, HIDDEN = 64, 4, 128

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(self.FEATURES)
        self.in_proj = nn.Linear(self.FEATURES, 3 * self.FEATURES)
        self.out_proj = nn.Linear(self.FEATURES, self.FEATURES)
        self.norm2 = nn.LayerNorm(self.FEATURES)
        self.fc1 = nn.Linear(self.FEATURES, self.HIDDEN)
        self.fc2 = nn.Linear(self.HIDDEN, self.FEATURES)

    def attention(self, x):
        images, tokens, features = x.shape
        of_head = features // self.HEADS
        queries, keys, values = (
            self.in_proj(x).view(images, tokens, 3, self.HEADS, of_head).permute(2, 0, 3, 1, 4))
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(of_head)
        mixed = scores.softmax(-1) @ values
        return self.out_proj(mixed.transpose(1, 2).reshape(images, tokens, features))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(F.relu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(28, EncoderLayer.FEATURES)
        self.places = nn.Parameter(torch.zeros(28, EncoderLayer.FEATURES))
        self.layers = nn.Sequential(EncoderLayer(), EncoderLayer())
        self.norm = nn.LayerNorm(EncoderLayer.FEATURES)
        self.fc = nn.Linear(EncoderLayer.FEATURES, 10)

    def forward(self, x):
        x = self.layers(self.embed(x.flatten(1, 2)) + self.places)
        return F.log_softmax(self.fc(self.norm(x).mean(1)), dim=1)


NETWORKS = {"mnist-cnn": MnistNetwork, "residual-20": Residual20, "wide-mlp": WideMlp,
            "large-mlp": LargeMlp, "transformer": Transformer}


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
