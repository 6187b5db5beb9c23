"""Adam's second moment of minibatches, against formulas in numpy: twelve steps under a trace of changing batches."""

import math
import unittest
from typing import Tuple

import rubato  # Before numpy, which loads OpenBLAS.
import numpy
import torch
from support import TestCase
from torch import nn
from torch.nn import functional as F

TRACE = [32, 64, 16, 16, 128, 96, 256, 16, 64, 112, 32, 32]
BATCHES = [*TRACE[:-1], 24]  # the last minibatch has what is left
MINIBATCH = 16
RATE, DECAY, EPSILON = 0.02, 0.3, 1e-6
BETA1, BETA2 = 0.8, 0.95


def samples():
    random = numpy.random.RandomState(3)
    targets = random.randint(0, 3, sum(BATCHES))
    # The first minibatch has no weight where classes are weights.
    targets[:MINIBATCH] = 0
    centers = random.normal(size=(3, 5))
    return centers[targets] + random.normal(scale=1.5, size=(len(targets), 5)), targets


INPUTS, TARGETS = samples()


def model():
    """Softmax regression in double precision."""
    torch.manual_seed(1)
    return nn.Linear(5, 3).double()


def weighted(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Cross entropy in which a sample has the weight of its class."""
    weights = target.to(output.dtype)
    return (weights * F.cross_entropy(output, target, reduction="none")).sum(), weights.sum()


def minibatch(w, begin, end, weights):
    """The weight of a minibatch, and the gradient of its mean loss; the bias is the last column of the matrix."""
    x = numpy.hstack([INPUTS[begin:end], numpy.ones((end - begin, 1))])
    scores = x @ w.T
    p = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[numpy.arange(end - begin), TARGETS[begin:end]] -= 1
    weight = weights[begin:end].sum()
    return weight, (weights[begin:end, None] * p).T @ x / weight if weight > 0 else numpy.zeros_like(w)


def by_hand(weights, decoupled, amsgrad, clip_norm, second_moment):
    linear = model()
    w = numpy.hstack([linear.weight.detach().numpy(), linear.bias.detach().numpy()[:, None]])
    m, v, largest = numpy.zeros_like(w), numpy.zeros_like(w), numpy.zeros_like(w)
    begin = 0
    for step, batch in enumerate(BATCHES, 1):
        end = begin + batch
        parts = [minibatch(w, i, min(i + MINIBATCH, end), weights) for i in range(begin, end, MINIBATCH)]
        begin = end
        total = sum(weight for weight, _ in parts)
        mean = sum(weight * g for weight, g in parts) / total
        factor = min(1, clip_norm / (math.sqrt((mean**2).sum()) + 1e-6)) if clip_norm else 1
        decay = 0 if decoupled else DECAY * w
        applied = factor * mean + decay
        if second_moment == "minibatch":
            square = sum(weight * (factor * g + decay) ** 2 for weight, g in parts) / total
        else:
            square = applied**2
        m = BETA1 * m + (1 - BETA1) * applied
        v = BETA2 * v + (1 - BETA2) * square
        largest = numpy.maximum(largest, v)
        if decoupled:
            w = w * (1 - RATE * DECAY)
        divisor = numpy.sqrt((largest if amsgrad else v) / (1 - BETA2**step)) + EPSILON
        w = w - RATE * m / (1 - BETA1**step) / divisor
    return w


def trained(second_moment, decoupled=False, amsgrad=False, **options):
    linear = model()
    optimizer = "adamw" if decoupled else "adam"
    result = rubato.train(
        linear, (INPUTS, TARGETS), trace=TRACE, minibatch=MINIBATCH, remainder="carry", sampler="in-order", epochs=1,
        rule="constant", lr=RATE, weight_decay=DECAY, engine="libtorch",
        optimizer=f"{optimizer}:beta1={BETA1},beta2={BETA2},eps={EPSILON},amsgrad={str(amsgrad).lower()},"
                  f"second-moment={second_moment}", **options)
    found = result.module
    return result, numpy.hstack([found.weight.detach().numpy(), found.bias.detach().numpy()[:, None]])


class TwelveSteps(TestCase):
    def check(self, options, by_hand_options):
        found = {}
        for second_moment in ("minibatch", "mean"):
            with self.subTest(**by_hand_options, second_moment=second_moment):
                result, found[second_moment] = trained(second_moment, **options)
                self.assertEqual(result.steps["batch"].tolist(), BATCHES)
                wanted = by_hand(**by_hand_options, second_moment=second_moment)
                self.assertLess(abs(found[second_moment] / wanted - 1).max(), 1e-9)
        self.assertGreater(abs(found["minibatch"] - found["mean"]).max(), 0.01)

    def test_are_those_of_numpy(self):
        ones = numpy.ones(len(TARGETS))
        for decoupled in (False, True):
            for amsgrad in (False, True):
                self.check({"decoupled": decoupled, "amsgrad": amsgrad},
                           {"weights": ones, "decoupled": decoupled, "amsgrad": amsgrad, "clip_norm": None})

    def test_clipped_by_their_norm(self):
        self.check({"clip_norm": 0.3}, {"weights": numpy.ones(len(TARGETS)), "decoupled": False, "amsgrad": False, "clip_norm": 0.3})

    def test_of_a_loss_with_weights(self):
        self.check({"decoupled": True, "loss": weighted},
                   {"weights": TARGETS.astype(float), "decoupled": True, "amsgrad": False, "clip_norm": None})


class HalfPrecision(TestCase):
    OPTIONS = {"model": "softmax", "engine": "libtorch", "optimizer": "adamw:second-moment=minibatch", "lr": 0.01,
               "trace": 128, "epochs": 1, "samples": 2560}

    def test_squares_are_of_gradients_without_the_scale(self):
        wanted = rubato.train(**self.OPTIONS).steps["loss"]
        self.assertLess(wanted[-1], wanted[0] / 2)
        for scale in (256, 4096):
            found = rubato.train(precision=f"fp16:scale={scale}", **self.OPTIONS).steps["loss"]
            self.assertLess(abs(found / wanted - 1).max(), 0.05)

    def test_a_step_that_overflows_is_skipped(self):
        result = rubato.train(precision="fp16:scale=1e9", **self.OPTIONS)
        self.assertEqual(result.steps["lr"][0], 0)
        self.assertGreater(result.steps["lr"][-1], 0)
        self.assertLess(result.steps["loss"][-1], result.steps["loss"][0])


if __name__ == "__main__":
    unittest.main()
