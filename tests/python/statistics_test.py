"""The statistics of rubato.compare() (docs/compare.md), recomputed from the runs by numpy and scipy."""

import math
import sys
import tempfile
import unittest

import rubato
from support import TestCase

try:
    import numpy
    from scipy import stats
except ImportError:
    print("skipped: no numpy and scipy here")
    sys.exit(77)

LOST = -math.inf
TRACES = ("elastic", "saw", "spot:most=16,wait=0.02,life=0.05,seed=1")
RULES = ("linear", "root", "adascale")
SEEDS = 4


def holm(p):
    """The adjusted p-values of {name: p}."""
    adjusted, largest = {}, 0.0
    for left, name in zip(range(len(p), 0, -1), sorted(p, key=p.get)):
        largest = max(largest, min(1.0, left * p[name]))
        adjusted[name] = largest
    return adjusted


class Uniform:
    """SplitMix64 by its definition: rubato's numbers of a step, uniform in [0, 1)."""

    MASK = (1 << 64) - 1
    STEP = 0x9E3779B97F4A7C15

    def __init__(self, step):
        self.seed = self.mixed(0)
        for part in (0, step, 0):
            self.seed = self.mixed(self.seed ^ part)

    def mixed(self, x):
        x = (x + self.STEP) & self.MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & self.MASK
        return x ^ (x >> 31)

    def __getitem__(self, n):
        return (self.mixed((self.seed + n * self.STEP) & self.MASK) >> 11) / 2 ** 53


class Experiment:
    """The final values of an experiment with lost runs, by trace and rule: accuracies in percent, LOST for lost runs."""

    def __init__(self, found):
        self.answer, self.csv = found.answer, found.cells
        runs = found.runs
        self.values = {}
        for row in range(runs.rows):
            value = 100 * runs["final"][row] if runs["end"][row] == "finished" else LOST
            self.values.setdefault((str(runs["trace"][row]), str(runs["rule"][row])), []).append(value)
        self.baseline = numpy.array(self.values[("128", "constant")])

    def cells(self, trace):
        return {rule: numpy.array(self.values[(trace, rule)]) for rule in RULES}

    def whole(self, trace):
        return {rule: values for rule, values in self.cells(trace).items() if numpy.isfinite(values).all()}

    def scores(self, rule):
        """Of each trace, those of the seeds."""
        deviation = self.baseline.std(ddof=1)
        return numpy.array([(self.cells(trace)[rule] - self.baseline) / deviation for trace in TRACES])


def interquartile_mean(scores):
    """scipy's trimmed mean, which cannot bear infinities in what it leaves out."""
    lowest = numpy.where(numpy.isfinite(scores), scores, -1e300)
    mean = stats.trim_mean(numpy.asarray(lowest).ravel(), 0.25)
    return mean if mean > -1e290 else LOST


def or_lost(number):
    return LOST if number is None else number


class Statistics(TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as temporary:
            folder = f"{temporary}/experiment"
            first = rubato.compare(model="mlp", trace=list(TRACES), rule=list(RULES), seed=range(1, SEEDS + 1), epochs=2,
                                   lr=0.3, on_trace_end="cycle", baseline="lr=0.05", margin="baseline", out=folder)
            # Another margin needs no other runs.
            cls.of = {"baseline": Experiment(first), 5.0: Experiment(rubato.compare(resume=folder, margin=5.0))}
        cls.experiment = cls.of["baseline"]
        cls.all = cls.experiment.answer["all_conditions"]

    def test_there_are_lost_runs_and_whole_cells(self):
        lost = sum(value == LOST for values in self.experiment.values.values() for value in values)
        self.assertGreater(lost, 0)
        self.assertTrue(numpy.isfinite(self.experiment.baseline).all())
        self.assertTrue(any(len(self.experiment.whole(trace)) > 1 for trace in TRACES))

    def test_margins(self):
        for name, experiment in self.of.items():
            margin = experiment.baseline.std(ddof=1) if name == "baseline" else name
            for trace in TRACES:
                whole = experiment.whole(trace)
                best = max(whole, key=lambda rule: whole[rule].mean()) if whole else None
                for group, other, own in (("margin_to_baseline", experiment.baseline, None),
                                          ("margin_to_best", whole.get(best), best)):
                    self.check_margins(experiment, trace, group, other, own, margin)

    def check_margins(self, experiment, trace, group, other, own, margin):
        found = {cell["rule"]: cell[group] for cell in experiment.answer["cells"] if cell["trace"] == trace}
        if other is None:
            self.assertEqual(set(found.values()), {None})
            return
        p, whole = {}, experiment.whole(trace)
        for rule in RULES:
            with self.subTest(group=group, trace=trace, rule=rule):
                test = found[rule]
                self.assertAlmostEqual(test["margin"], margin)
                if rule == own:
                    self.assertEqual((test["verdict"], test["p"]), ("best", None))
                elif rule not in whole:
                    self.assertEqual((test["verdict"], test["p"], test["bound"]), ("lost", 1, None))
                    p[rule] = 1.0
                else:
                    deficit = other - whole[rule]
                    result = stats.ttest_1samp(deficit, margin, alternative="less")
                    bound = deficit.mean() + stats.t.ppf(0.95, SEEDS - 1) * stats.sem(deficit)
                    self.assertAlmostEqual(test["p"], result.pvalue, delta=1e-9)
                    self.assertAlmostEqual(test["bound"], bound, delta=1e-8)
                    self.assertEqual(test["seeds"], max(2, math.ceil((2.49 * deficit.std(ddof=1) / margin) ** 2)))
                    p[rule] = result.pvalue
        for rule, adjusted in holm(p).items():
            self.assertAlmostEqual(found[rule]["p_holm"], adjusted, delta=1e-9)
            if rule in whole:
                self.assertEqual(found[rule]["verdict"], "non-inferior" if adjusted <= 0.05 else "not shown")

    def test_the_same_in_csv(self):
        cells = self.experiment.csv
        for row, cell in enumerate(self.experiment.answer["cells"]):
            test = cell["margin_to_best"] or {}
            self.assertEqual(cells["best_margin_verdict"][row], test.get("verdict") or "")
            for column, key in (("best_margin_p_holm", "p_holm"), ("best_margin_seeds", "seeds")):
                value = test.get(key)
                numpy.testing.assert_equal(cells[column][row], numpy.nan if value is None else value)

    def test_profiles(self):
        self.assertEqual(self.all["pairs"], len(TRACES) * SEEDS)
        for choice in self.all["choices"]:
            for distance, share in zip(self.all["distances"], choice["profile"]):
                near = 0
                for trace in TRACES:
                    cells = self.experiment.cells(trace)
                    best = numpy.max(list(cells.values()), axis=0)
                    own = cells[choice["rule"]]
                    near += sum(own[i] > LOST and best[i] - own[i] <= distance + 1e-7 for i in range(SEEDS))
                self.assertAlmostEqual(share, near / self.all["pairs"])
        self.assertEqual(self.all["distances"][0], 0)
        for choice in self.all["choices"]:
            self.assertAlmostEqual(choice["profile"][-1], 1 - choice["lost"] / self.all["pairs"])

    def test_ranks_and_counts(self):
        ranks = {rule: [] for rule in RULES}
        for trace in TRACES:
            cells = self.experiment.cells(trace)
            for i in range(SEEDS):
                for rule, rank in zip(RULES, stats.rankdata([-cells[rule][i] for rule in RULES])):
                    ranks[rule].append(rank)
        for choice in self.all["choices"]:
            rule = choice["rule"]
            self.assertAlmostEqual(choice["mean_rank"], numpy.mean(ranks[rule]))
            self.assertEqual(choice["lost"], int(numpy.isinf(self.experiment.scores(rule)).sum()))
            for group, ours in (("margin_to_baseline", "baseline"), ("margin_to_best", "best")):
                near = sum((cell[group] or {}).get("verdict") in ("non-inferior", ours)
                           for cell in self.experiment.answer["cells"]
                           if cell["rule"] == rule and cell["trace"] in TRACES)
                self.assertEqual(choice[f"non_inferior_to_{ours}"], near)

    def test_scores(self):
        deviation = self.experiment.baseline.std(ddof=1)
        numpy.testing.assert_allclose(self.all["units"], [deviation] * len(TRACES))
        finite = 0
        for choice in self.all["choices"]:
            wanted = interquartile_mean(self.experiment.scores(choice["rule"]))
            finite += math.isfinite(wanted)
            if math.isfinite(wanted):
                self.assertAlmostEqual(choice["score"], wanted, delta=1e-6)
            else:
                self.assertIsNone(choice["score"])
        self.assertGreater(finite, 0)

    def test_intervals_to_the_bit_of_the_generator(self):
        for choice in self.all["choices"]:
            scores = self.experiment.scores(choice["rule"])
            means = []
            for resample in range(self.all["resamples"]):
                uniform = Uniform(resample)
                drawn = [[int(uniform[stratum * SEEDS + i] * SEEDS) for i in range(SEEDS)] for stratum in range(len(TRACES))]
                means.append(interquartile_mean([scores[stratum][seeds] for stratum, seeds in enumerate(drawn)]))
            means.sort()
            left_out = len(means) // 40
            for end, wanted in (("low", means[left_out]), ("high", means[-1 - left_out])):
                if math.isfinite(wanted):
                    self.assertAlmostEqual(choice[end], wanted, delta=1e-6)
                else:
                    self.assertIsNone(choice[end])

    def test_intervals_of_other_draws(self):
        """Those of numpy's generator, percentiles as numpy takes them: equal but for chance."""
        generator = numpy.random.default_rng(1)
        compared = 0
        for choice in self.all["choices"]:
            scores = self.experiment.scores(choice["rule"])
            if choice["low"] is None or choice["high"] is None:
                continue
            means = []
            for _ in range(10_000):
                drawn = generator.integers(SEEDS, size=scores.shape)
                means.append(interquartile_mean(numpy.take_along_axis(scores, drawn, axis=1)))
            low, high = numpy.percentile(means, [2.5, 97.5])
            spread = numpy.std(means)
            self.assertAlmostEqual(choice["low"], low, delta=0.35 * spread)
            self.assertAlmostEqual(choice["high"], high, delta=0.35 * spread)
            compared += 1
        self.assertGreater(compared, 0)


if __name__ == "__main__":
    unittest.main()
