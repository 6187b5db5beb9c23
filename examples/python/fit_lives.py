"""A generator of machines from recorded lives, fitted and tested with scipy:

    fit_lives.py LIVES [--deadline HOURS] [--law LAW] [--machine N] [--hours HOURS] [--seed N]

LIVES has a line {"seconds": 5400, "preempted": true} for each machine, or is a CSV of events, milliseconds,add|remove,node.
Lives that were not preempted are censored: they count as longer than they were. Each law is fitted to every other life by
maximum likelihood, the one with the least AIC is taken, and the other half tests it by the distance of Kolmogorov and
Smirnov to the product limit of Kaplan and Meier, with a parametric bootstrap. The last line is what --trace takes.
"""

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy
from scipy import optimize

RESAMPLES = 199


# Each law by its parameters: the density of lives, the share of longer ones, and lives by the share of shorter ones.
def exponential(life):
    return lambda t: numpy.exp(-t / life) / life, lambda t: numpy.exp(-t / life), lambda u: -life * numpy.log1p(-u)


def weibull(life, shape):
    def longer(t):
        return numpy.exp(-((t / life) ** shape))

    return (lambda t: shape / life * (t / life) ** (shape - 1) * longer(t), longer,
            lambda u: life * (-numpy.log1p(-u)) ** (1 / shape))


def bathtub(a, tau1, tau2, b):
    """That of Kadupitiya, Jadhao and Sharma, "Modeling the temporally constrained preemptions", HPDC 2020."""
    def longer(t):
        return 1 - a * (1 - numpy.exp(-t / tau1) + numpy.exp((t - b) / tau2) - numpy.exp(-b / tau2))

    ages = numpy.linspace(0, b + 5 * tau2, 20000)
    return (lambda t: a * (numpy.exp(-t / tau1) / tau1 + numpy.exp((t - b) / tau2) / tau2), longer,
            lambda u: numpy.interp(u, 1 - longer(ages), ages))


def log_likelihood(law, hours, preempted):
    with numpy.errstate(all="ignore"):
        value = numpy.log(law[0](hours[preempted])).sum() + numpy.log(law[1](hours[~preempted])).sum()
    return value if numpy.isfinite(value) else -1e9


class Law:
    """A law's name, its parameters by numbers without bounds, and where the search for them begins."""

    def __init__(self, name, make, names, parameters, starts):
        self.name, self.make, self.names, self.parameters, self.starts = name, make, names, parameters, starts

    def fit(self, hours, preempted, starts=None):
        found = [optimize.minimize(lambda x: -log_likelihood(self.make(*self.parameters(x)), hours, preempted), start,
                                   method="Nelder-Mead", options={"maxiter": 4000, "maxfev": 4000})
                 for start in (self.starts if starts is None else starts)]
        best = min(found, key=lambda one: one.fun)
        return best.x, -best.fun


def laws(deadline, mean):
    every = [Law("exponential", exponential, ["life"], numpy.exp, [[numpy.log(mean)]]),
             Law("weibull", weibull, ["life", "shape"], numpy.exp, [[numpy.log(mean), 0]])]
    if numpy.isinf(deadline):
        return every

    def parameters(x):
        # A share of young machines, one of old ones, and those that reach the deadline.
        early, late = numpy.exp(numpy.clip(x[:2], -14, 14)) / (1 + numpy.exp(numpy.clip(x[:2], -14, 14)).sum())
        tau1, tau2 = numpy.exp(numpy.clip(x[2:], numpy.log(1 / 60), numpy.log(10 * deadline)))
        a = early / -numpy.expm1(-deadline / tau1)
        return a, tau1, tau2, deadline - tau2 * numpy.log(late / a / -numpy.expm1(-deadline / tau2))

    starts = [[-0.5, -1, numpy.log(early * deadline), numpy.log(late * deadline)]
              for early in (0.02, 0.1, 0.5) for late in (0.05, 0.3, 1)]
    return [*every, Law("bathtub", bathtub, ["a", "tau1", "tau2", "b"], parameters, starts)]


def product_limit(hours, ended):
    """The ages at which lives ended, and the shares that had ended by then (Kaplan and Meier 1958)."""
    ages = numpy.unique(hours[ended])
    left = [1 - (ended & (hours == age)).sum() / (hours >= age).sum() for age in ages]
    return ages, 1 - numpy.cumprod(left)


def distance(law, hours, preempted):
    ages, shares = product_limit(hours, preempted)
    ended = 1 - law[1](ages)
    before = numpy.concatenate([[0], shares[:-1]])
    last = abs(1 - law[1](hours.max()) - shares[-1])
    return max(numpy.abs(ended - shares).max(), numpy.abs(ended - before).max(), last)


def p_of(law, at, first, second, deadline, random):
    """The share of resamples, and of the test as one of them, whose distance is at least that of the lives."""
    found = distance(law.make(*law.parameters(at)), *second)
    ages, shares = product_limit(numpy.concatenate([first[0], second[0]]), ~numpy.concatenate([first[1], second[1]]))

    def drawn(count):
        lives = law.make(*law.parameters(at))[2](random.random(count))
        censored = numpy.append(ages, numpy.inf)[numpy.searchsorted(shares, random.random(count), side="right")]
        return cut(numpy.minimum(lives, censored), lives <= censored, deadline)

    larger = 1
    for _ in range(RESAMPLES):
        resample, other = drawn(len(first[0])), drawn(len(second[0]))
        fitted, _ = law.fit(*resample, starts=[at])
        larger += distance(law.make(*law.parameters(fitted)), *other) >= found
    return found, larger / (RESAMPLES + 1)


def cut(hours, preempted, deadline):
    """Lives that reach the deadline end there, and not by a preemption; none is shorter than a millisecond."""
    return numpy.clip(hours, 0.001 / 3600, deadline), preempted & (hours < deadline)


def read(path):
    """Hours, whether each life was preempted, and when it began, if the file tells."""
    text = Path(path).read_text()
    if text.lstrip().startswith("{"):
        lives = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [life["seconds"] / 3600 for life in lives], [bool(life["preempted"]) for life in lives], None
    hours, preempted, begins, there = [], [], [], {}
    for time, kind, node in csv.reader(text.splitlines()):
        now = int(time) / 3.6e6
        if kind == "add":
            there[node] = len(hours)
            begins.append(now)
            hours.append(None)
            preempted.append(False)
        else:
            life = there.pop(node)
            hours[life], preempted[life] = now - begins[life], True
    return [now - begin if life is None else life for life, begin in zip(hours, begins)], preempted, begins


def counts(hours, begins):
    """`most`, `start` and `wait`: the time for which machines were missing at `most`, by the number of arrivals."""
    if begins is None:
        return ""
    changes = sorted([(begin, 1) for begin in begins] + [(begin + life, -1) for begin, life in zip(begins, hours)])
    first, last = changes[0][0], changes[-1][0]
    running = numpy.cumsum([change for _, change in changes])
    times = numpy.array([time for time, _ in changes])
    most, start = running[times < last].max(), sum(begin == first for begin in begins)
    missing = ((most - running[:-1]) * numpy.diff(times)).sum()
    arrived = sum(begin > first for begin in begins)
    return f"most={most},start={start}," + (f"wait={max(0.001, missing / arrived):.6g}," if arrived else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lives")
    parser.add_argument("--deadline", type=float, default=numpy.inf, help="the age at which the provider ends each machine")
    parser.add_argument("--law", choices=["exponential", "weibull", "bathtub"], help="instead of the one with the least AIC")
    parser.add_argument("--machine", type=int, default=1, help="devices in each machine")
    parser.add_argument("--hours", type=float, default=24, help="hours to generate, 8760 for a year")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    hours, preempted, begins = read(options.lives)
    machines = counts(hours, begins)
    hours, preempted = cut(numpy.array(hours), numpy.array(preempted), options.deadline)
    first, second = (hours[::2], preempted[::2]), (hours[1::2], preempted[1::2])
    if min(first[1].sum(), second[1].sum()) < 10:
        sys.exit(f"{options.lives}: fewer than 10 losses in half of it would hardly refute any law")
    fits = []
    for law in laws(options.deadline, first[0].sum() / first[1].sum()):
        at, likelihood = law.fit(*first)
        text = ",".join(f"{name}={value:.6g}" for name, value in zip(law.names, law.parameters(at)))
        fits.append((2 * len(law.names) - 2 * likelihood, law, at, text))
        print(f"{law.name:12} {text}  log-likelihood {likelihood:.2f}  AIC {fits[-1][0]:.2f}")
    if options.law is not None:
        fits = [fit for fit in fits if fit[1].name == options.law] or sys.exit("a bathtub needs a --deadline")
    _, law, at, text = min(fits, key=lambda fit: fit[0])
    found, p = p_of(law, at, first, second, options.deadline, numpy.random.default_rng(options.seed))
    print(f"{law.name} is at a distance of {found:.4f} from the lives that it has not seen, p = {p:.3g}:",
          "refuted" if p <= 0.05 else "not refuted")
    machine = f"machine={options.machine}," if options.machine > 1 else ""
    deadline = "" if numpy.isinf(options.deadline) else f",deadline={options.deadline:.6g}"
    print(f"machines:{machines}{machine}law={law.name},{text}{deadline},hours={options.hours:.6g},seed={options.seed}")


if __name__ == "__main__":
    main()
