"""A training loop in PyTorch that can be stopped after any step and continued on another number of ranks."""

import torch
import torch.distributed as dist


def order(samples, epoch, seed):
    """The order of the samples in an epoch: the same on all ranks."""
    return torch.randperm(samples, generator=torch.Generator().manual_seed(seed + epoch)).tolist()


class ElasticSampler:
    """The batches of one rank. The place in the epoch counts samples of all ranks, so that it has a meaning on any number of them."""

    def __init__(self, samples, world_size, rank, batch, epoch=0, seed=0, state=None):
        self.samples, self.world_size, self.rank, self.batch, self.epoch, self.seed = samples, world_size, rank, batch, epoch, seed
        self.place = state["place"] if state else 0

    def __iter__(self):
        indices = order(self.samples, self.epoch, self.seed)
        while self.place < self.samples:
            batch = indices[self.place:min(self.place + self.batch, self.samples)]
            self.place += len(batch)
            yield batch[self.rank::self.world_size]

    def state_dict(self):
        return {"place": self.place}


def train(model, inputs, loss, state, *, steps, batch, rate, after_step, seed=0):
    """Trains the model on this rank of the process group, and returns the state from which a later call continues.

    loss(outputs) is the sum over its samples, rate(step, samples) the learning rate of a step.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    state = state or {"step": 0, "epoch": 0, "sampler": None}
    if "model" in state:
        model.load_state_dict(state["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step, epoch, end = state["step"], state["epoch"], state["step"] + steps
    sampler = ElasticSampler(len(inputs), world_size, rank, batch, epoch, seed, state["sampler"])
    batches = iter(sampler)
    while step < end:
        share = next(batches, None)
        if share is None:
            epoch += 1
            sampler = ElasticSampler(len(inputs), world_size, rank, batch, epoch, seed)
            batches = iter(sampler)
            continue
        # Ranks may have different shares, and none in a short last batch: sums are what can be added.
        total = torch.tensor(float(len(share)))
        dist.all_reduce(total)
        optimizer.zero_grad()
        loss(model(inputs[share])).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= total
        optimizer.param_groups[0]["lr"] = rate(step, int(total))
        optimizer.step()
        step += 1
        after_step(step, model)
    return {"model": model.state_dict(), "step": step, "epoch": epoch, "sampler": sampler.state_dict()}
