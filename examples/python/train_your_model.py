"""A model and data of your own: train, stop when the model is good enough, and read the weights back."""

import numpy
import rubato
import torch
from torch import nn


class Net(nn.Module):
    """Assigns points in the plane to one of two spirals."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Dropout(0.05),
                                    nn.Linear(64, 2))

    def forward(self, points):
        return self.layers(points)


def spirals(count, seed):
    """Two spirals with `count` points in total."""
    random = numpy.random.default_rng(seed)
    arm = random.integers(0, 2, count)
    angle = 5 * numpy.sqrt(random.random(count))
    points = numpy.stack([angle * numpy.cos(angle + numpy.pi * arm), angle * numpy.sin(angle + numpy.pi * arm)], axis=1)
    return (points / 5 + random.normal(scale=0.01, size=points.shape)).astype(numpy.float32), arm


def good_enough(epoch):
    print(f"epoch {epoch['epoch'] + 1}: test accuracy {100 * epoch['test_accuracy']:.1f} %")
    return epoch["test_accuracy"] < 0.99


torch.manual_seed(0)
model = Net()
# Devices come and go: a batch size and a number of cores for each step, again and again.
trace = rubato.Trace([(256, 8)] * 20 + [(64, 2)] * 10 + [(128, 4)] * 10, end="cycle")
result = rubato.train(model, spirals(8192, seed=1), validation=spirals(2048, seed=2), trace=trace, rule="adascale",
                      ref_batch=64, lr=0.1, momentum=0.9, epochs=60, on_epoch=good_enough)

# Read the weights back: into the module, or as TorchScript.
model.load_state_dict(result.state_dict)
model.eval()
points, arms = spirals(1000, seed=3)
found = model(torch.from_numpy(points)).argmax(dim=1).numpy()
assert (result.module(torch.from_numpy(points)).argmax(dim=1).numpy() == found).all()
print(f"stopped: {result.stopped}; {100 * (found == arms).mean():.1f} % of new points")
