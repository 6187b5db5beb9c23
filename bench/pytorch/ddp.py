#!/usr/bin/python3
"""The peer "DDP": DistributedDataParallel over gloo on the loopback interface, with a process per
replica and its fastest memory layout. Prints one line of JSON."""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel

from networks import LAYOUTS, NETWORKS, layouts_of, minibatches, network, sgd, train
from windows import Stopwatch, report

WARM_UP_STEPS = 10


def from_first(value):
    """Returns the first process's number in all processes, so that all make the same decisions with it."""
    shared = torch.tensor(value, dtype=torch.float64)
    dist.broadcast(shared, src=0)
    return shared.item()


class Replica:
    """This process's part of one setting, warmed up and ready to be timed."""

    def __init__(self, name, minibatch, layout, rank, alone=False):
        self.layout = layout
        self._samples_per_step = minibatch * dist.get_world_size()
        # These are DDP's fastest settings: buckets that are the gradients, no broadcast of batch-norm
        # buffers before each forward, and a graph that never changes.
        model = network(name, layout)
        if not alone:
            model = DistributedDataParallel(model, gradient_as_bucket_view=True,
                                            broadcast_buffers=False, static_graph=True)
        optimizer, batches = sgd(model), minibatches(minibatch, layout, images=2048, seed=rank)
        self._watch = Stopwatch(lambda steps: train(model, optimizer, batches, steps), dist.barrier)
        self._watch.steps_per_second(WARM_UP_STEPS)
        self._steps_per_second = from_first(self._watch.steps_per_second(WARM_UP_STEPS))

    def samples_per_second(self, seconds):
        """The rate of all processes together in one window of about that many seconds."""
        steps = max(1, round(seconds * self._steps_per_second))
        self._steps_per_second = from_first(self._watch.steps_per_second(steps))
        return self._steps_per_second * self._samples_per_step


def worker(rank, options, meeting_point):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank,
                            world_size=options.processes)
    replicas = [Replica(options.network, options.minibatch, layout, rank, options.alone)
                for layout in options.layout or layouts_of(options.network)]
    best = replicas[0]
    if len(replicas) > 1:
        best = max(replicas, key=lambda r: r.samples_per_second(options.seconds / 2))
    best.samples_per_second(options.seconds / 4)
    rates = [best.samples_per_second(options.seconds) for _ in range(options.windows)]
    if rank == 0:
        report(rates, peer="ddp", processes=options.processes, minibatch=options.minibatch,
               layout=best.layout)
    dist.barrier()
    # Tearing DDP down can deadlock: libtorch 1.13's ~ProcessGroupGloo waits, with Python's lock
    # held, for a thread that needs the lock to drop its last tensor.
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8, help="replicas (8)")
    parser.add_argument("--minibatch", type=int, default=32, help="samples of a replica's step (32)")
    parser.add_argument("--network", choices=NETWORKS, default="mnist-cnn")
    parser.add_argument("--layout", nargs="+", choices=LAYOUTS, help="memory layouts to try")
    parser.add_argument("--alone", action="store_true",
                        help="without the all-reduce, to time forward, backward and update alone")
    parser.add_argument("--seconds", type=float, default=2, help="length of a timed window (2)")
    parser.add_argument("--windows", type=int, default=3, help="timed windows (3)")
    options = parser.parse_args()

    # torchrun sets this, too. BLAS reads it when it is loaded, before anyone can call set_num_threads.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(worker, args=(options, os.path.join(folder, "meeting-point")),
                              nprocs=options.processes)


if __name__ == "__main__":
    main()
