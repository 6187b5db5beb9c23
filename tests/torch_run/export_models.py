"""Writes TorchScript models as users export them: python3 export_models.py FOLDER. All take images of
[batch, 1, 28, 28] and give the logits of ten classes."""

import sys

import torch
from torch import nn
from torch.nn import functional as F


class Cnn(nn.Module):
    """Dropout and batch normalisation."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(8 * 14 * 14, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


class Lstm(nn.Module):
    """Weights that are in a list, too, and dropout between layers."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(28, 16, num_layers=2, dropout=0.2, batch_first=True)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        outputs, _ = self.lstm(x.flatten(1, 2))
        return self.fc(outputs[:, -1])


class Transformer(nn.Module):
    """Attention and dropout."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(28, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc(self.encoder(self.embed(x.flatten(1, 2))).mean(1))


class Parts(nn.Module):
    """Tied weights, a frozen layer, an integer buffer and one that is made anew by each forward; float64."""

    def __init__(self):
        super().__init__()
        self.down = nn.Linear(784, 12, bias=False)
        self.frozen = nn.Linear(12, 12).requires_grad_(False)
        self.up = nn.Linear(784, 12, bias=False)
        self.up.weight = self.down.weight
        self.fc = nn.Linear(784, 10)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(12))

    def forward(self, x):
        y = torch.tanh(self.frozen(self.down(x.flatten(1))))
        if self.training:
            self.seen += x.size(0)
            self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        return self.fc(torch.tanh(F.linear(y - self.mean, self.up.weight.t())))


class Forked(nn.Module):
    """Two tasks that draw random numbers."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def half(self, x):
        return F.dropout(self.fc(x), 0.5, self.training)

    def forward(self, x):
        x = x.flatten(1)
        other = torch.jit.fork(self.half, x)
        return self.half(x) + torch.jit.wait(other)


torch.manual_seed(1)
folder = sys.argv[1]
for name, model in {"cnn": Cnn(), "lstm": Lstm(), "transformer": Transformer(), "parts": Parts().double(),
                    "forked": Forked()}.items():
    torch.jit.script(model).save(f"{folder}/{name}.pt")
torch.jit.trace(Cnn(), torch.randn(4, 1, 28, 28), check_trace=False).save(f"{folder}/traced.pt")
