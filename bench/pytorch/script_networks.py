"""Networks as users export them from Python, and their data; bench/script_accuracy trains all of them."""

import gzip
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

LENGTH = 64  # the length of a sequence of characters


class Cnn(nn.Module):
    """Logits [batch, 10] of images [batch, 1, 28, 28], with batch normalisation and dropout."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(32 * 7 * 7, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


class Lstm(nn.Module):
    """Logits [batch, 10] of the rows of images [batch, 28, 28], with dropout between two layers."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(28, 48, num_layers=2, dropout=0.2, batch_first=True)
        self.fc = nn.Linear(48, 10)

    def forward(self, x):
        outputs, _ = self.lstm(x)
        return self.fc(outputs[:, -1])


class Transformer(nn.Module):
    """Logits [batch, LENGTH, characters] of the next character of each in [batch, LENGTH], with attention to the
    characters before it, and dropout."""

    def __init__(self, characters):
        super().__init__()
        self.embed = nn.Embedding(characters, 64)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, 64))
        self.register_buffer("mask", torch.full((LENGTH, LENGTH), float("-inf")).triu(1))
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
                                     for _ in range(2)])
        self.fc = nn.Linear(64, characters)

    def forward(self, x):
        x = self.embed(x) + self.places
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.fc(x)


def read_idx(folder, name, header):
    path = Path(folder) / name
    data = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    return torch.frombuffer(bytearray(data[header:]), dtype=torch.uint8)


def idx_images(folder, samples, tests):
    """The first images of MNIST, Fashion-MNIST or KMNIST."""
    sets = []
    for name, count in (("train", samples), ("t10k", tests)):
        images = read_idx(folder, f"{name}-images-idx3-ubyte", 16).view(-1, 28, 28)
        sets += [images[:count].clone(), read_idx(folder, f"{name}-labels-idx1-ubyte", 8)[:count].long()]
    return dict(zip(("x", "y", "x_test", "y_test"), sets))


def drawn_images(samples, tests):
    """Ten patterns with so much noise that no network can distinguish all images."""
    generator = torch.Generator().manual_seed(1)
    patterns = torch.rand(10, 28, 28, generator=generator)
    labels = torch.randint(10, (samples + tests,), generator=generator)
    noise = torch.randn(samples + tests, 28, 28, generator=generator)
    images = (96 + 12 * patterns[labels] + 40 * noise).clamp(0, 255).to(torch.uint8)
    return {"x": images[:samples], "y": labels[:samples], "x_test": images[samples:], "y_test": labels[samples:]}


def rows_of(images):
    """The images as real numbers, for networks that read rows."""
    return {name: tensor.float() / 255 if name.startswith("x") else tensor for name, tensor in images.items()}


def text_of(files, samples, tests):
    """Pieces of a text, with the next character of each character as the target. The last pieces are the test set."""
    text = "".join(Path(file).read_text(encoding="utf-8") for file in files)
    numbers = {character: number for number, character in enumerate(sorted(set(text)))}
    tokens = torch.tensor([numbers[character] for character in text])
    pieces = min((len(tokens) - 1) // LENGTH, samples + tests)
    x, y = (tokens[first:][:pieces * LENGTH].view(pieces, LENGTH) for first in (0, 1))
    # The training set consists of whole batches only.
    samples = (pieces - tests) // 128 * 128
    return {"x": x[:samples], "y": y[:samples], "x_test": x[pieces - tests:], "y_test": y[pieces - tests:]}
