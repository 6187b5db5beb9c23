"""Eight mistakes of elastic training that were reported in public, each made small, in our own words: MISTAKES.

The addresses are those of the reports; the code is ours.
"""

from typing import Any, NamedTuple

from elastic_loop import ElasticLoop, order


class WorldSizeForgotten(ElasticLoop):
    """The checkpoint counts batches, and a resume on more ranks skips as many of its own, which are larger."""

    def saved(self, state):
        return state | {"place": -(-state["place"] // self.phase.batch)}

    def resumed(self, state):
        return state | {"place": min(state["place"] * self.phase.batch, self.job.samples)}


class RanksWeightedAlike(ElasticLoop):
    """The means of the ranks are averaged, although the last batch of an epoch gives them 3 samples and 1."""

    def gradient(self, shares, size):
        return sum(self.mean(share) for share in shares) / len(shares)


class SummedOverReplicas(ElasticLoop):
    """Each replica has the mean of its samples, and the all-reduce sums them."""

    def gradient(self, shares, size):
        return sum(self.mean(share) * len(share) for share in shares) / size * self.phase.world_size


class LoaderAhead(ElasticLoop):
    """The loader has fetched the next batch already when its place is saved."""

    def saved(self, state):
        return state | {"place": min(state["place"] + self.phase.batch, self.job.samples)}


class RampShiftsSchedule(ElasticLoop):
    """Samples are counted as steps times the batch of today, although the batch has grown."""

    def rate(self, state, size):
        return self.job.rate(state["step"] * self.phase.batch, size)


class EpochZeroAfterReset(ElasticLoop):
    """A restarted sampler shuffles with epoch 0, wherever the training is."""

    def resumed(self, state):
        return state | {"of_sampler": -state["epoch"]}

    def batch(self, state):
        if state["place"] >= self.job.samples:
            state |= {"epoch": state["epoch"] + 1, "place": 0}
        begin = state["place"]
        state["place"] = min(begin + self.phase.batch, self.job.samples)
        return order(self.job.samples, state["epoch"] + state.get("of_sampler", 0), self.job.seed)[begin:state["place"]]


def padded(samples, world_size, rank):
    """The test set of a rank, which is padded from its beginning until all ranks have as many samples."""
    length = -(-samples // world_size) * world_size
    return [index % samples for index in range(length)][rank::world_size]


class WindowCutAtEpochEnd(ElasticLoop):
    """Gradients of minibatches are accumulated and divided by the number of a full window, also in the last one of an epoch."""

    def gradient(self, shares, size):
        return sum(self.mean(share) * len(share) for share in shares) / self.phase.batch


class Mistake(NamedTuple):
    """A mistake, how it is checked, and the check that is to find it."""

    name: str
    report: str
    code: Any
    check: str
    claims: dict = {}


MISTAKES = [
    Mistake("a resumed loader skips or repeats on another world size", "github.com/huggingface/transformers/issues/40245",
            WorldSizeForgotten(), "every-sample-once"),
    Mistake("a last batch is weighted 1/2, 1/2 instead of 3/4, 1/4", "github.com/keras-team/keras/issues/20241",
            RanksWeightedAlike(), "last-batch", {"batch": "per-rank"}),
    Mistake("losses are summed over replicas", "github.com/tensorflow/tensorflow/issues/25806", SummedOverReplicas(), "mean-not-sum"),
    Mistake("a loader is a step ahead of its weights", "github.com/huggingface/accelerate/pull/4233", LoaderAhead(), "loader-in-step"),
    Mistake("a batch ramp shifts the schedule", "github.com/NVIDIA-NeMo/Megatron-Bridge/issues/2609", RampShiftsSchedule(), "schedule-place",
            {"schedule": "samples"}),
    Mistake("an epoch number is wrong after a reset", "github.com/huggingface/accelerate/issues/2016", EpochZeroAfterReset(), "epoch-number"),
    Mistake("padding is counted twice in a test", "github.com/pytorch/pytorch/issues/25162", padded, "every-sample-once"),
    Mistake("an accumulation window is cut at an epoch's end", "github.com/Lightning-AI/pytorch-lightning/issues/19987",
            WindowCutAtEpochEnd(), "last-batch"),
]
