"""The built-in models as modules of PyTorch, which load the weights of a run (docs/models.md)."""

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


class Mlp(nn.Module):
    """mlp: two hidden layers of 128 and 64; for MNIST Mlp(784, 10)."""

    def __init__(self, inputs, classes):
        super().__init__()
        self.linear1 = nn.Linear(inputs, 128)
        self.linear2 = nn.Linear(128, 64)
        self.linear3 = nn.Linear(64, classes)

    def forward(self, x):
        x = F.relu(self.linear1(x.flatten(1)))
        x = F.relu(self.linear2(x))
        return F.log_softmax(self.linear3(x), dim=1)


class Softmax(nn.Module):
    """softmax: multinomial logistic regression; for MNIST Softmax(784, 10)."""

    def __init__(self, inputs, classes):
        super().__init__()
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x):
        return F.log_softmax(self.linear(x.flatten(1)), dim=1)


class ToyNet(nn.Module):
    """toy-net: for MNIST ToyNet(8192, 10), 512 channels of 4 x 4 behind the convolutions."""

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


def twin(model, weights):
    """A module for the weights of the built-in model of that name, in their shapes. Raises Error for a model that
    has none here: mlp with arguments, and quadratic."""
    if model == "mnist-cnn":
        return MnistNetwork()
    if model == "mlp":
        return Mlp(weights["linear1.weight"].shape[1], weights["linear3.weight"].shape[0])
    if model == "softmax":
        return Softmax(weights["linear.weight"].shape[1], weights["linear.weight"].shape[0])
    if model == "toy-net":
        return ToyNet(weights["dense.1.weight"].shape[1], weights["dense.4.weight"].shape[0],
                      weights["conv.0.weight"].shape[1])
    raise Error(f"{model} has no module of PyTorch here; accepted: state_dict, with a module of your own")
