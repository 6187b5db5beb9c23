"""Rules that answer more than a rate, against formulas in numpy: twelve steps under a trace of changing batches."""

import dataclasses
import math
import unittest

import numpy
import rubato
import torch
from support import TestCase
from torch import nn

BATCHES = [64, 64, 256, 256, 64, 16, 16, 16, 128, 32, 256, 64]
REFERENCE = 64
MINIBATCH = 16
RATE = 0.05
DECAY = 0.1


def samples():
    random = numpy.random.RandomState(3)
    targets = random.randint(0, 3, sum(BATCHES))
    centers = random.normal(size=(3, 5))
    return centers[targets] + random.normal(scale=1.5, size=(len(targets), 5)), targets


INPUTS, TARGETS = samples()


def model():
    """Softmax regression in double precision."""
    torch.manual_seed(1)
    return nn.Linear(5, 3).double()


def gradient(w, begin, end):
    """That of the mean cross entropy of these samples; the bias is the last column of the matrix."""
    x = numpy.hstack([INPUTS[begin:end], numpy.ones((end - begin, 1))])
    scores = x @ w.T
    p = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[numpy.arange(end - begin), TARGETS[begin:end]] -= 1
    return p.T @ x / (end - begin)


@dataclasses.dataclass
class Step:
    """The numbers of a step; a rule changes them."""

    batch: int
    previous: int
    minibatches: list  # the gradients
    rate: float = RATE
    momentum: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = DECAY
    mean: float = 1.0  # the factor of m
    variance: float = 1.0  # the factor of v's variance
    forget: bool = False  # v

    @property
    def scale(self):
        return self.batch / REFERENCE

    @property
    def changed(self):
        return self.previous not in (0, self.batch)


class Sgd:
    def __init__(self, mxnet=False):
        self.mxnet, self.v = mxnet, 0.0

    def metric(self):
        return None

    def update(self, w, g, step):
        d = (step.rate if self.mxnet else 1) * (g + step.decay * w)
        self.v = step.momentum * (self.v * step.mean) + d
        return w - (self.v if self.mxnet else step.rate * self.v)


class Adam:
    """Adam with sums of weights in place of powers of the betas: m / m_weight and v / v_weight have no bias."""

    def __init__(self, decoupled, amsgrad=False):
        self.decoupled, self.amsgrad = decoupled, amsgrad
        self.m = self.v = self.m_weight = self.v_weight = 0.0
        self.largest = 0.0
        self.squares = 0

    def metric(self):
        v = self.largest if self.amsgrad else self.v
        return 1 / (numpy.sqrt(v / self.v_weight) + 1e-8) if self.squares >= 5 else None

    def rescale(self, v, factor):
        m = self.m / self.m_weight
        variance = numpy.maximum(v / self.v_weight - m * m, 0)
        return numpy.where(variance > 0, self.v_weight * (m * m + variance * factor), v)

    def update(self, w, g, step):
        if step.variance != 1:
            self.v, self.largest = self.rescale(self.v, step.variance), self.rescale(self.largest, step.variance)
        self.m = self.m * step.mean
        if step.mean == 0:
            self.m_weight = 0.0
        if step.forget:
            self.v, self.largest, self.v_weight, self.squares = 0.0, 0.0, 0.0, 0
        if self.decoupled:
            w = w * (1 - step.rate * step.decay)
        else:
            g = g + step.decay * w
        self.m = step.beta1 * self.m + (1 - step.beta1) * g
        self.v = step.beta2 * self.v + (1 - step.beta2) * g * g
        self.m_weight = step.beta1 * self.m_weight + 1 - step.beta1
        self.v_weight = step.beta2 * self.v_weight + 1 - step.beta2
        self.largest = numpy.maximum(self.largest, self.v)
        self.squares += 1
        v = (self.largest if self.amsgrad else self.v) / self.v_weight
        return w - step.rate * (self.m / self.m_weight) / (numpy.sqrt(v) + step.epsilon)


class Gain:
    """AdaScale (docs/techniques.md) of gradients multiplied by a metric; its averages count each step N / 1000."""

    def __init__(self, power=1.0, in_metric=True):
        self.power, self.in_metric, self.previous = power, in_metric, None
        self.sums = numpy.zeros(2)
        self.weight = 0.0

    def __call__(self, step, optimizer):
        metric = optimizer.metric() if self.in_metric else 1.0
        gradients, new = step.minibatches, len(step.minibatches)
        if new == 1 and self.previous is not None:
            gradients = gradients + [self.previous]
        self.previous = step.minibatches[0] if new == 1 else None
        if metric is not None and len(gradients) > 1:
            n = len(gradients)
            of_minibatches = sum(numpy.sum((metric * g) ** 2) for g in gradients) / n
            of_mean = numpy.sum((metric * sum(gradients) / n) ** 2)
            variance = (of_minibatches - of_mean) * n / (n - 1)
            share = n * MINIBATCH / REFERENCE / n
            found = numpy.array([max(of_mean - variance / n, 0.0), max(variance * share, 1e-6 * of_minibatches * share)])
            self.sums = (1 - new / 1000) * self.sums + new / 1000 * found
            self.weight = (1 - new / 1000) * self.weight + new / 1000
        gain = min(1.0, step.scale)
        if self.weight:
            signal, variance = self.sums / self.weight
            gain = (variance + signal) / (variance / step.scale + signal)
        step.rate *= gain**self.power


def linear(step, optimizer):
    step.rate *= step.scale


def root(step, optimizer):
    step.rate *= math.sqrt(step.scale)


def root_adam(step, optimizer):
    root(step, optimizer)
    step.beta1, step.beta2, step.epsilon = step.beta1**step.scale, step.beta2**step.scale, step.epsilon / math.sqrt(step.scale)


def root_adam_published(step, optimizer):
    root(step, optimizer)
    step.beta1, step.beta2 = (max(0.0, 1 - step.scale * (1 - beta)) for beta in (step.beta1, step.beta2))
    step.epsilon /= math.sqrt(step.scale)


def in_samples(name):
    def change(step, factor_before):
        if name == "momentum":
            # A velocity is a sum: in the long run a gradient moves the weights as far as the rule says.
            step.rate *= (1 - step.momentum**step.scale) / (1 - step.momentum)
        setattr(step, name, getattr(step, name) ** step.scale)

    return change


def timescale(step, factor_before):
    step.decay *= step.scale * RATE / step.rate


def rescaled_velocity(step, factor_before):
    """PyTorch's velocity, or Adam's mean: old gradients move the weights as far as before."""
    if step.changed:
        step.mean = factor_before / (step.rate / RATE)


def rescaled_velocity_with_rate(step, factor_before):
    """MXNet's velocity, which has the old rate in it: Goyal et al. 2017, section 3."""
    if step.changed:
        step.mean = step.rate / RATE / factor_before


def rescaled_variance(step, factor_before):
    if step.changed:
        step.variance = step.previous / step.batch


def forgotten_mean(step, factor_before):
    if step.changed:
        step.mean = 0.0


def forgotten_squares(step, factor_before):
    step.forget = step.changed


def expected(optimizer, rule, *changes, momentum=0.0, lookahead=None):
    """The weights after the twelve steps; the slow ones of a Lookahead of so many reference batches."""
    module = model()
    w = numpy.hstack([module.weight.detach().numpy(), module.bias.detach().numpy()[:, None]])
    slow, since = w, 0
    begin, previous, factor = 0, 0, 1.0
    for batch in BATCHES:
        minibatches = [gradient(w, at, at + MINIBATCH) for at in range(begin, begin + batch, MINIBATCH)]
        step = Step(batch, previous, minibatches, momentum=momentum)
        rule(step, optimizer)
        for change in changes:
            change(step, factor)
        w = optimizer.update(w, gradient(w, begin, begin + batch), step)
        begin, previous, factor = begin + batch, batch, step.rate / RATE
        since += batch
        if lookahead and since // REFERENCE >= lookahead:
            slow = slow + 0.5 * (w - slow)
            w, since = slow, 0
    return slow if lookahead else w


def found(**options):
    result = rubato.train(model(), (INPUTS, TARGETS), trace=BATCHES, ref_batch=REFERENCE, minibatch=MINIBATCH, lr=RATE,
                          weight_decay=DECAY, sampler="in-order", epochs=1, threads=2, **options)
    assert result.steps["batch"].tolist() == BATCHES
    weights = result.state_dict
    return numpy.hstack([weights["weight"].numpy(), weights["bias"].numpy()[:, None]])


class RulesForAdam(TestCase):
    def check(self, wanted, **options):
        weights = found(**options)
        difference = numpy.abs(weights - wanted).max()
        # The update of a small gradient that follows a large one has few digits of it left.
        self.assertLess(difference, 1e-9, options)
        return weights

    def test_rules(self):
        for rule, of in (("linear", linear), ("root", root), ("root-adam", root_adam),
                         ("root-adam:betas=published", root_adam_published)):
            self.check(expected(Adam(decoupled=True), of), rule=rule, optimizer="adamw")
            self.check(expected(Adam(decoupled=False), of), rule=rule, optimizer="adam")
            self.check(expected(Adam(decoupled=True, amsgrad=True), of), rule=rule, optimizer="adamw:amsgrad=true")
        for rule, of in (("linear", linear), ("root", root)):
            self.check(expected(Sgd(), of), rule=rule, momentum=0)

    def test_adascale_in_the_metric_of_the_optimizer(self):
        plain = "adascale:metric=optimizer"
        adamw = self.check(expected(Adam(decoupled=True), Gain()), rule=plain, optimizer="adamw")
        self.check(expected(Adam(decoupled=False, amsgrad=True), Gain()), rule=plain, optimizer="adam:amsgrad=true")
        # Mean squares that begin anew have no metric in five steps.
        self.check(expected(Adam(decoupled=True), Gain(), forgotten_squares), rule=plain, optimizer="adamw",
                   on_batch_change="v=reset")
        self.check(expected(Adam(decoupled=True), Gain(power=0.5)), rule=plain + ",power=0.5", optimizer="adamw")
        euclidean = self.check(expected(Adam(decoupled=True), Gain(in_metric=False)), rule="adascale", optimizer="adamw")
        self.assertGreater(numpy.abs(euclidean - adamw).max(), 1e-3)
        # Norms that are logged besides stay Euclid's, and change nothing.
        noisy = self.check(adamw, rule=plain, optimizer="adamw", log_noise=True)
        self.assertTrue(numpy.array_equal(noisy, adamw))
        with self.assertRaisesRegex(rubato.Error, "rule adascale measures gradients in the metric of the optimizer, which the "
                                    "optimizer does not have; accepted: with optimizer adam"):
            found(rule=plain)

    def test_memories_in_samples(self):
        for name in ("beta1", "beta2"):
            self.check(expected(Adam(decoupled=True), root, in_samples(name)), rule="root", optimizer="adamw",
                       memory=f"{name}=samples")
        self.check(expected(Adam(decoupled=False), root, in_samples("beta1"), in_samples("beta2")), rule="root",
                   optimizer="adam", memory="beta1=samples,beta2=samples")
        for form, mxnet in (("pytorch", False), ("mxnet", True)):
            self.check(expected(Sgd(mxnet=mxnet), linear, in_samples("momentum"), momentum=0.9), momentum=0.9,
                       optimizer=f"sgd:form={form}", memory="momentum=samples")
            rescaled = rescaled_velocity_with_rate if mxnet else rescaled_velocity
            self.check(expected(Sgd(mxnet=mxnet), root, timescale, in_samples("momentum"), rescaled, momentum=0.9), rule="root",
                       momentum=0.9, optimizer=f"sgd:form={form}", memory="momentum=samples", decay_rule="timescale",
                       on_batch_change="rescale")
        self.check(expected(Sgd(), linear, lookahead=3), lookahead=3, momentum=0, memory="lookahead=samples")
        # The recorded rate is the one that was used.
        recorded = rubato.train(model(), (INPUTS, TARGETS), trace=BATCHES, ref_batch=REFERENCE, minibatch=MINIBATCH, lr=RATE,
                                rule="linear", momentum=0.9, memory="momentum=samples", epochs=1, threads=2)
        scales = numpy.array(BATCHES) / REFERENCE
        numpy.testing.assert_allclose(recorded.steps["lr"], RATE * scales * (1 - 0.9**scales) / (1 - 0.9), rtol=1e-12)

    def test_the_timescale_of_decay(self):
        for rule, of in (("linear", linear), ("root", root), ("root-adam", root_adam)):
            self.check(expected(Adam(decoupled=True), of, timescale), rule=rule, optimizer="adamw", decay_rule="timescale")
        self.check(expected(Sgd(), root, timescale, momentum=0.9), rule="root", momentum=0.9, decay_rule="timescale")
        self.check(expected(Adam(decoupled=True), Gain(), timescale), rule="adascale:metric=optimizer", optimizer="adamw",
                   decay_rule="timescale")

    def test_a_velocity_when_the_batch_changes(self):
        for form, mxnet, rescaled in (("pytorch", False, rescaled_velocity), ("mxnet", True, rescaled_velocity_with_rate)):
            trained = [self.check(expected(Sgd(mxnet=mxnet), linear, *changes, momentum=0.9), momentum=0.9,
                                  optimizer=f"sgd:form={form}", on_batch_change=treatment)
                       for treatment, changes in (("keep", ()), ("rescale", [rescaled]), ("reset", [forgotten_mean]))]
            for one, other in ((0, 1), (0, 2), (1, 2)):
                self.assertGreater(numpy.abs(trained[one] - trained[other]).max(), 1e-3)

    def test_moments_when_the_batch_changes(self):
        treatments = (("keep", ()), ("m=rescale", [rescaled_velocity]), ("v=rescale", [rescaled_variance]),
                      ("rescale", [rescaled_velocity, rescaled_variance]), ("m=reset", [forgotten_mean]),
                      ("v=reset", [forgotten_squares]), ("reset", [forgotten_mean, forgotten_squares]),
                      ("m=reset,v=rescale", [forgotten_mean, rescaled_variance]))
        for name, decoupled, amsgrad in (("adam", False, False), ("adamw", True, False), ("adamw:amsgrad=true", True, True)):
            for treatment, changes in treatments:
                self.check(expected(Adam(decoupled, amsgrad), root, *changes), rule="root", optimizer=name,
                           on_batch_change=treatment)
        # All options together.
        self.check(expected(Adam(decoupled=True), root, in_samples("beta2"), timescale, rescaled_velocity, rescaled_variance),
                   rule="root", optimizer="adamw", memory="beta2=samples", decay_rule="timescale", on_batch_change="rescale")

    def test_a_rule_of_ones_own_that_returns_a_dictionary(self):
        def root_adam_of_python(batch, statistics):
            scale = statistics["scale"]
            return {"factor": math.sqrt(scale), "beta1": statistics["beta1"] ** scale, "beta2": statistics["beta2"] ** scale,
                    "epsilon": statistics["epsilon"] / math.sqrt(scale)}

        self.check(expected(Adam(decoupled=True), root_adam), rule=root_adam_of_python, optimizer="adamw")

        class Changes:
            """Decays twice as much, and treats memories when the batch changes."""

            def __init__(self):
                self.previous = 0

            def __call__(self, batch, statistics):
                answer = {"factor": statistics["scale"], "weight_decay_factor": 2}
                if self.previous not in (0, batch):
                    answer |= {"mean_factor": 0.5, "variance_factor": 3} if batch > self.previous else {"forget_squares": True}
                self.previous = batch
                return answer

            def state(self):
                return [self.previous]

            def load_state(self, numbers):
                self.previous = int(numbers[0])

        def changes(step, factor_before):
            step.decay *= 2
            if step.changed and step.batch > step.previous:
                step.mean, step.variance = 0.5, 3
            step.forget = step.changed and step.batch < step.previous

        self.check(expected(Adam(decoupled=True), linear, changes), rule=Changes(), optimizer="adamw")

        def momentum(batch, statistics):
            return {"factor": 0.5, "momentum": 0.0 if batch == 256 else statistics["momentum"]}

        def half(step, optimizer):
            step.rate *= 0.5
            step.momentum = 0.0 if step.batch == 256 else step.momentum

        self.check(expected(Sgd(), half, momentum=0.9), rule=momentum, momentum=0.9)
        with self.assertRaisesRegex(rubato.Error, "which the optimizer does not have"):
            found(rule=lambda batch, statistics: {"factor": 1, "beta1": 0.9})


if __name__ == "__main__":
    unittest.main()
