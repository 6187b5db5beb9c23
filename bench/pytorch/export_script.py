"""Writes a network of the benchmarks as TorchScript: python3 export_script.py NAME FILE."""

import sys
import warnings

import torch
from torch import nn

from networks import NETWORKS


class ChannelsLast(nn.Module):
    """Converts images to channels-last, as rubato's own residual network does."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x.contiguous(memory_format=torch.channels_last))


def script_of(name):
    net = NETWORKS[name]()
    if name == "transformer":  # The constants of its class cannot be scripted.
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        return torch.jit.trace(net, torch.randn(32, 1, 28, 28), check_trace=False)
    return torch.jit.script(ChannelsLast(net) if name == "residual-20" else net)


if __name__ == "__main__":
    torch.manual_seed(1)
    script_of(sys.argv[1]).save(sys.argv[2])
