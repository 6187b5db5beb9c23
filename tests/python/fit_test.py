"""`rubato trace fit` (docs/traces.md), fitted and tested again with numpy and scipy."""

import json
import re
import unittest

from support import SHARED, TestCase, rubato_program

try:
    import numpy
    from scipy import optimize
except ImportError:
    raise unittest.SkipTest("no numpy and scipy here") from None

NEVER = numpy.inf


def cut(hours, preempted, deadline):
    return numpy.minimum(hours, deadline), preempted & (hours < deadline)


# Each law by its parameters: the densities of lives, and the shares of longer ones.
def exponential(life):
    return lambda t: numpy.exp(-t / life) / life, lambda t: numpy.exp(-t / life)


def weibull(life, shape):
    longer = lambda t: numpy.exp(-((t / life) ** shape))
    return lambda t: shape / life * (t / life) ** (shape - 1) * longer(t), longer


def bathtub(a, tau1, tau2, b):
    """As the paper has it, less its value at 0."""
    return (lambda t: a * (numpy.exp(-t / tau1) / tau1 + numpy.exp((t - b) / tau2) / tau2),
            lambda t: 1 - a * (1 - numpy.exp(-t / tau1) + numpy.exp((t - b) / tau2) - numpy.exp(-b / tau2)))


LAWS = {"exponential": exponential, "weibull": weibull, "bathtub": bathtub}


def log_likelihood(law, hours, preempted):
    density, longer = law
    with numpy.errstate(all="ignore"):
        sum_ = numpy.log(density(hours[preempted])).sum() + numpy.log(longer(hours[~preempted])).sum()
    return sum_ if numpy.isfinite(sum_) else -1e9


def best(make, starts, hours, preempted):
    """The largest log-likelihood, by parameters without bounds."""
    found = [optimize.minimize(lambda x: -log_likelihood(make(x), hours, preempted), start, method="Nelder-Mead",
                               options={"maxiter": 8000, "maxfev": 8000, "xatol": 1e-9, "fatol": 1e-11})
             for start in starts]
    least = min(found, key=lambda one: one.fun)
    return -least.fun, least.x


def best_bathtub(deadline, hours, preempted):
    def make(x):
        early, late = numpy.exp(numpy.clip(x[:2], -14, 14)) / (1 + numpy.exp(numpy.clip(x[:2], -14, 14)).sum())
        tau1, tau2 = numpy.exp(numpy.clip(x[2:], numpy.log(1 / 60), numpy.log(10 * deadline)))
        a = early / -numpy.expm1(-deadline / tau1)
        return bathtub(a, tau1, tau2, deadline - tau2 * numpy.log(late / a / -numpy.expm1(-deadline / tau2)))

    starts = [(-0.5, -1, numpy.log(tau1 * deadline), numpy.log(tau2 * deadline))
              for tau1 in (0.03, 0.3) for tau2 in (0.03, 0.2, 1)]
    return best(make, starts, hours, preempted)


def distance(longer, deadline, hours, preempted):
    """Kolmogorov and Smirnov's, to the product limit at each age with preempted lives."""
    hours, preempted = cut(hours, preempted, deadline)
    largest, living = 0.0, 1.0
    for age in numpy.unique(hours[preempted]):
        largest = max(largest, abs(living - longer(age)))
        living *= 1 - (preempted & (hours == age)).sum() / (hours >= age).sum()
        largest = max(largest, abs(living - longer(age)))
    return max(largest, abs(living - longer(hours.max())))


class Fit(TestCase):
    def fit(self, hours, preempted, *options):
        """What the program finds: {law: (parameters, log-likelihood)}, the law taken, its distance and p."""
        file = self.folder() / "lives.jsonl"
        file.write_text("".join(json.dumps({"seconds": 3600 * float(h), "preempted": bool(p)}) + "\n"
                                for h, p in zip(hours, preempted)))
        code, out, errors = rubato_program("trace", "fit", str(file), *options)
        self.assertEqual((code, errors), (0, ""))
        rows = re.findall(r"^(\w+) +(\w+=\S+) +(-?[\d.]+) +(-?[\d.]+)( +taken)?$", out, re.MULTILINE)
        laws = {name: ({key: float(value) for key, value in (part.split("=") for part in text.split(","))}, float(fit))
                for name, text, fit, _, _ in rows}
        for name, _, fit, aic, _ in rows:
            self.assertAlmostEqual(float(aic), 2 * len(laws[name][0]) - 2 * float(fit), delta=0.02)
        self.assertTrue(any(row[4] for row in rows))
        self.assertEqual(next(row[0] for row in rows if row[4]), min(rows, key=lambda row: float(row[3]))[0])
        numbers = re.search(r"is ([\d.]+); p = ([\d.]+) by", out).groups()
        return laws, next(row[0] for row in rows if row[4]), *map(float, numbers)

    def check(self, hours, preempted, deadline):
        """Compares a fit with scipy's, and returns it."""
        options = ("--resamples=99",) if deadline == NEVER else ("--resamples=99", f"--deadline={deadline}")
        laws, taken, found, p = self.fit(hours, preempted, *options)
        half = cut(hours[::2], preempted[::2], deadline)
        best_of = {"exponential": lambda: best(lambda x: exponential(*numpy.exp(x)), [[1]], *half),
                   "weibull": lambda: best(lambda x: weibull(*numpy.exp(x)), [[1, 0]], *half),
                   "bathtub": lambda: best_bathtub(deadline, *half)}
        self.assertEqual(set(laws), set(LAWS) - ({"bathtub"} if deadline == NEVER else set()))
        for name, (parameters, fit) in laws.items():
            value, at = best_of[name]()
            # The program prints two decimals. scipy may stay in a maximum that is not the largest.
            self.assertGreater(fit, value - 0.02, name)
            self.assertAlmostEqual(log_likelihood(LAWS[name](**parameters), *half), fit, delta=0.02, msg=name)
            if name != "bathtub":
                self.assertLess(fit, value + 0.02, name)
                for own, theirs in zip(parameters.values(), numpy.exp(at)):
                    self.assertAlmostEqual(own / theirs, 1, delta=2e-5, msg=name)
        _, longer = LAWS[taken](**laws[taken][0])
        self.assertAlmostEqual(distance(longer, deadline, hours[1::2], preempted[1::2]), found, delta=6e-5)
        return laws, taken, p

    def censored(self, random, lives):
        """Ends about a third of the lives before their time."""
        ends = random.exponential(2 * numpy.median(lives), len(lives))
        return numpy.minimum(lives, ends), lives <= ends

    def test_finds_weibull_and_exponential(self):
        random = numpy.random.default_rng(1)
        for shape in (0.5, 1, 2):
            laws, taken, p = self.check(*self.censored(random, 3 * random.weibull(shape, 4000)), NEVER)
            self.assertAlmostEqual(laws["weibull"][0]["shape"], shape, delta=0.05 * shape)
            self.assertAlmostEqual(laws["weibull"][0]["life"], 3, delta=0.4)
            self.assertGreater(p, 0.01)
            if shape != 1:
                self.assertEqual(taken, "weibull")

    def test_finds_the_bathtub(self):
        # Two in five exponential lives with a mean of 1.2 hours, two in five that end before the deadline, 0.8 hours
        # on average, and one in five that reaches it: a = 0.4 and b = 24, but for the cut at the deadline.
        random = numpy.random.default_rng(2)
        kind = random.random(4000)
        lives = numpy.where(kind < 0.4, random.exponential(1.2, 4000),
                            numpy.where(kind < 0.8, 24 - random.exponential(0.8, 4000), 24.5))
        seen = numpy.where(random.random(4000) < 0.2, random.uniform(0, 24, 4000), 30)
        laws, taken, p = self.check(numpy.minimum(lives, seen), lives <= seen, 24)
        self.assertEqual(taken, "bathtub")
        self.assertGreater(p, 0.01)
        for name, value, delta in (("a", 0.4, 0.03), ("tau1", 1.2, 0.1), ("tau2", 0.8, 0.1), ("b", 24, 0.15)):
            self.assertAlmostEqual(laws["bathtub"][0][name], value, delta=delta, msg=name)

    def test_fits_googles_machines(self):
        file = SHARED / "data/traces/vm_lifetimes.jsonl"
        if not file.exists():
            self.skipTest(f"no {file}")
        lives = [json.loads(line) for line in file.read_text().splitlines()]
        hours = numpy.array([life["seconds"] for life in lives]) / 3600
        preempted = numpy.array([life["preempted"] is not None for life in lives])
        _, taken, p = self.check(hours, preempted, 24)
        self.assertEqual(taken, "bathtub")
        self.assertGreater(p, 0.05)


if __name__ == "__main__":
    unittest.main()
