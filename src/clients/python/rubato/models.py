"""The built-in models as modules of PyTorch, which load the weights of a run (docs/models.md)."""

from collections import OrderedDict
from typing import Optional

import torch
from torch import nn
from torch.nn import functional as F

from ._rubato import Error


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


class Mlp(nn.Sequential):
    """mlp: dense layers linear1, linear2 and so on; for MNIST Mlp((784, 128, 64, 10)).

    sizes: from the features of a sample, over the widths of the hidden layers, to the outputs
    activation: between the layers, "relu" or "tanh"
    is_real: whether the outputs are numbers for real targets, not log-probabilities of classes
    """

    def __init__(self, sizes, activation="relu", is_real=False):
        kinds = {"relu": nn.ReLU, "tanh": nn.Tanh}
        if activation not in kinds:
            raise Error(f"activation {activation!r}; accepted: {' or '.join(kinds)}")
        layers = OrderedDict(flatten=nn.Flatten())
        count = len(sizes) - 1
        for layer in range(1, count + 1):
            layers[f"linear{layer}"] = nn.Linear(sizes[layer - 1], sizes[layer])
            if layer < count:
                layers[f"{activation}{layer}"] = kinds[activation]()
        if not is_real:
            layers["log_softmax"] = nn.LogSoftmax(1)
        super().__init__(layers)


class Softmax(nn.Module):
    """softmax: multinomial logistic regression; for MNIST Softmax(784, 10)."""

    def __init__(self, inputs, classes):
        super().__init__()
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x):
        return F.log_softmax(self.linear(x.flatten(1)), dim=1)


class ToyNet(nn.Module):
    """toy-net: for MNIST ToyNet(8192, 10), 512 channels of 4 x 4 after the convolutions."""

    def __init__(self, inputs, classes, channels=1):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(channels, 64, 3), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 128, 3), nn.BatchNorm2d(128), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(128, 256, 3), nn.BatchNorm2d(256), nn.ReLU(),
            nn.Conv2d(256, 512, 3), nn.BatchNorm2d(512), nn.ReLU(), nn.MaxPool2d(2))
        self.dense = nn.Sequential(
            nn.Flatten(), nn.Linear(inputs, 512), nn.BatchNorm1d(512), nn.ReLU(),
            nn.Linear(512, classes))

    def forward(self, x):
        return F.log_softmax(self.dense(self.conv(x)), dim=1)


class Block(nn.Module):
    """Two convolutions of ResNet20, and the shortcut around them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut_bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.shortcut is None else self.shortcut_bn(self.shortcut(x))))


class ResNet20(nn.Module):
    """resnet20: for MNIST ResNet20(16, 1)."""

    def __init__(self, width=16, channels=3, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        blocks, inputs = [], width
        for outputs in (width, 2 * width, 4 * width):
            for _ in range(3):
                blocks.append(Block(inputs, outputs, 1 if inputs == outputs else 2))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn(self.conv(x))))
        return F.log_softmax(self.fc(x.mean((2, 3))), dim=1)


class EncoderLayer(nn.Module):
    """A layer of Transformer; `hidden` is True for pairs of tokens of which the second is hidden from the first."""

    def __init__(self, heads, dim, hidden, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1 = nn.LayerNorm(dim)
        self.in_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, hidden)
        self.fc2 = nn.Linear(hidden, dim)

    def attention(self, x, hidden: Optional[torch.Tensor]):
        samples, tokens, dim = x.shape
        of_head = dim // self.heads
        queries, keys, values = (
            self.in_proj(x).view(samples, tokens, 3, self.heads, of_head).permute(2, 0, 3, 1, 4).unbind())
        scores = queries @ keys.transpose(-2, -1) / of_head ** 0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        mixed = scores.softmax(-1) @ values
        return self.out_proj(mixed.transpose(1, 2).reshape(samples, tokens, dim))

    def forward(self, x, hidden: Optional[torch.Tensor]):
        x = x + F.dropout(self.attention(self.norm1(x), hidden), self.dropout, self.training)
        y = self.fc2(F.relu(self.fc1(self.norm2(x))))
        return x + F.dropout(y, self.dropout, self.training)


class Transformer(nn.Module):
    """transformer: for MNIST Transformer(28, 28, 10): 28 tokens of 28 numbers. For token ids `inputs` is None, and there is a
    vocabulary."""

    def __init__(self, tokens, inputs, classes, layers=2, heads=4, dim=64, hidden=128, dropout=0.0, vocabulary=None):
        super().__init__()
        self.embed = nn.Linear(inputs, dim) if vocabulary is None else nn.Embedding(vocabulary, dim)
        self.places = nn.Parameter(torch.zeros(tokens, dim))
        self.layers = nn.ModuleList(EncoderLayer(heads, dim, hidden, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, classes)
        self.vocabulary = vocabulary

    def encoded(self, x, hidden: Optional[torch.Tensor]):
        x = x + self.places
        for layer in self.layers:
            x = layer(x, hidden)
        return self.norm(x)

    def forward(self, x):
        if self.vocabulary is None:
            x = self.encoded(self.embed(x.transpose(1, 2).flatten(2)), None).mean(1)
        else:
            later = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
            x = self.encoded(self.embed(x), later)
        return F.log_softmax(self.fc(x), dim=-1)


def _perceptron(weights, activation, is_real):
    count = sum(name.endswith(".weight") for name in weights)
    sizes = [weights["linear1.weight"].shape[1]]
    sizes += [weights[f"linear{layer}.weight"].shape[0] for layer in range(1, count + 1)]
    return Mlp(sizes, activation, is_real)


def _transformer(weights, heads):
    tokens, dim = weights["places"].shape
    embed = weights["embed.weight"]
    is_linear = "embed.bias" in weights
    return Transformer(tokens, embed.shape[1] if is_linear else None, weights["fc.weight"].shape[0],
                       layers=sum(name.endswith("in_proj.weight") for name in weights), heads=heads, dim=dim,
                       hidden=weights["layers.0.fc1.weight"].shape[0], vocabulary=None if is_linear else embed.shape[0])


def twin(model, weights, is_real=False):
    """A module of the built-in model with that name and arguments, in the shapes of the weights; `is_real` says that
    its targets are numbers. Raises Error for quadratic, which has no such module."""
    name, _, arguments = model.partition(":")
    given = dict(argument.split("=") for argument in arguments.split(",") if argument)
    if name == "mnist-cnn":
        return MnistNetwork()
    if name == "mlp":
        return _perceptron(weights, given.get("activation", "relu"), is_real)
    if name == "softmax":
        return Softmax(weights["linear.weight"].shape[1], weights["linear.weight"].shape[0])
    if name == "toy-net":
        return ToyNet(weights["dense.1.weight"].shape[1], weights["dense.4.weight"].shape[0],
                      weights["conv.0.weight"].shape[1])
    if name == "resnet20":
        width, channels = weights["conv.weight"].shape[:2]
        return ResNet20(width, channels, weights["fc.weight"].shape[0])
    if name == "transformer":
        return _transformer(weights, int(given.get("heads", 4)))
    raise Error(f"{model} has no module of PyTorch here; accepted: state_dict, with a module of your own")
