"""A small elastic loop that is right, in steps that the known mistakes replace (known_mistakes.py)."""

import random

import numpy


def order(samples, epoch, seed):
    """The order of the samples in an epoch."""
    indices = list(range(samples))
    random.Random(1000 * seed + epoch).shuffle(indices)
    return indices


class ElasticLoop:
    """Ranks are emulated one after the other. Batches are consecutive parts of an epoch's order, and shares parts of a batch."""

    def __call__(self, job, phase, state):
        self.job, self.phase = job, phase
        state = self.resumed(dict(state or {"weights": [0.0] * job.samples, "step": 0, "epoch": 0, "place": 0, "seen": 0}))
        for _ in range(phase.steps):
            indices = self.batch(state)
            gradient = self.gradient([share for share in self.shares(indices) if share], len(indices))
            weights = numpy.array(state["weights"]) + self.rate(state, len(indices)) * gradient
            state |= {"weights": weights.tolist(), "step": state["step"] + 1, "seen": state["seen"] + len(indices)}
            job.record(weights)
        return self.saved(state)

    def resumed(self, state):
        """The state with which a phase begins, of the one that a checkpoint has."""
        return state

    def saved(self, state):
        """The checkpoint."""
        return state

    def batch(self, state):
        """The samples of the next step of all ranks."""
        if state["place"] >= self.job.samples:
            state |= {"epoch": state["epoch"] + 1, "place": 0}
        begin = state["place"]
        state["place"] = min(begin + self.phase.batch, self.job.samples)
        return order(self.job.samples, state["epoch"], self.job.seed)[begin:state["place"]]

    def shares(self, indices):
        """The samples of each rank: minibatches, of which the last has what is left."""
        size = self.phase.minibatch
        return [indices[rank * size:(rank + 1) * size] for rank in range(self.phase.world_size)]

    def mean(self, indices):
        """The gradient of a rank: that of the mean loss of its samples."""
        return self.job.inputs[indices].mean(axis=0)

    def gradient(self, shares, size):
        """The gradient of a step: the means of the ranks, weighted by their samples."""
        return sum(self.mean(share) * len(share) for share in shares) / size

    def rate(self, state, size):
        """The rate of the step."""
        return self.job.rate(state["step"], size)


class RankLoop:
    """What one rank does, for conformance.on_threads(): with tokens, running statistics and random numbers."""

    def __call__(self, job, phase, state, ranks):
        samples = job.samples
        state = self.resumed(state or {"weights": [0.0] * samples, "mean": [0.0] * samples, "step": 0, "place": 0, "epoch": 0}, ranks)
        weights, mean = numpy.array(state["weights"]), numpy.array(state["mean"])
        for step in range(state["step"], state["step"] + phase.steps):
            if state["place"] >= samples:
                state |= {"epoch": state["epoch"] + 1, "place": 0}
            batch = order(samples, state["epoch"], job.seed)[state["place"]:state["place"] + phase.batch]
            state["place"] += len(batch)
            share = batch[ranks.rank * phase.minibatch:(ranks.rank + 1) * phase.minibatch]
            weights = weights + job.rate(step, len(batch)) * self.gradient(job, share, ranks)
            mean = (1 - job.momentum) * mean + job.momentum * self.mean(job, share, ranks)
            job.record(weights, rank=ranks.rank, buffers=mean, random=self.random(step, ranks.rank))
        return state | {"weights": weights.tolist(), "mean": mean.tolist(), "step": state["step"] + phase.steps}

    def resumed(self, state, ranks):
        return dict(state)

    def gradient(self, job, share, ranks):
        """The mean over all tokens of the step."""
        tokens = job.tokens
        total = ranks.all_reduce(sum(tokens[index] for index in share))
        return ranks.all_reduce(sum((tokens[index] * job.inputs[index] for index in share), numpy.zeros(job.samples))) / total

    def mean(self, job, share, ranks):
        """The mean of the inputs of all ranks."""
        return ranks.all_reduce(job.inputs[share].sum(axis=0)) / ranks.all_reduce(len(share))

    def random(self, step, rank):
        return random.Random(f"{step} {rank}").random()
