"""The models, traces and comparisons of docs/findings.md. None has a rate: `rubato compare` finds it, and a comparison
whose rate is an end of what was tried is an error."""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys


@dataclasses.dataclass(frozen=True)
class Model:
    """What is trained: `samples` are those of an epoch, in whole batches of 32. The last epoch may be a part of one."""

    options: tuple
    samples: int
    epochs: float
    seeds: int = 5

    def total(self, times=1):
        """The samples of a training."""
        return int(self.samples * self.epochs * times)

    def length(self, times=1):
        """The options that end it."""
        epochs = math.ceil(self.epochs * times)
        part = ["--samples", self.total(times)] if self.total(times) < self.samples * epochs else []
        return ["--epochs", epochs, *part]


def transformer(dim):
    return Model(("--model", f"transformer:layers=1,heads=2,dim={dim},hidden={2 * dim},dropout=0", "--data",
                  "sentences:size=500000,length=32"), 15616, 3)


def mlp(hidden):
    return Model(("--model", f"mlp:hidden={hidden}", "--data", "mnist:{data}/fashion-mnist"), 60000, 2, 10)


# Epochs with which the baseline is within a point of where it ends with twice as many, which the part `epochs` checks.
# On Fashion-MNIST the CNN would need four or more, and the whole another five hours of a CPU.
MODELS = {"mlp": mlp(64), "mnist-cnn": Model(("--model", "mnist-cnn", "--data", "mnist:{data}/mnist"), 60000, 0.5),
          "transformer": transformer(32)}
# The sizes between which findings may transfer, and the optimizer of each.
SIZES = {**{f"transformer-{dim}": (transformer(dim), "adamw") for dim in (32, 64, 128)},
         **{f"mlp-{hidden}": (mlp(hidden), "sgd") for hidden in (32, 128, 512)}}

OPTIMIZERS = {"sgd": ["--momentum", "0.9", "--weight-decay", "0.0005"],
              "adamw": ["--optimizer", "adamw", "--weight-decay", "0.1"]}
# The last two are linear in the end, and reach that in an epoch (docs/adr/0088).
RULES = ["constant", "linear", "root", "adascale", "lbsgd:epochs=1", "adascale:linear-after=1"]
# Sizes are compared with fewer rules, since the largest transformer takes most of the time.
SIZE_RULES = RULES[:4]
# The mlp, whose runs are cheap, has more rules: those that were among the best, and those that papers advise.
MORE = {"sgd": ["adascale:power=0.5"], "adamw": ["adascale:power=0.5", "adascale:metric=optimizer", "root-adam"]}
TREATMENTS = {"sgd": ["keep", "m=rescale"], "adamw": ["keep", "m=rescale", "v=rescale"]}
SCHEDULES = {"cosine": "cosine:total={total}", "warmup": "warmup-cosine:warmup={warmup},total={total}"}

# Each device adds 32 samples to a batch of at most 512; a step takes so many seconds that traces have some 150 steps.
TRACES = {"constant": ("constant:devices=16", 600), "bamboo": ("{data}/traces/bamboo_p3_events.csv", 260),
          "saw": ("saw:high=32,low=4,cycles=2", 80), "daily": ("daily:low=4,high=32,noise=2,seed=1", 576)}
SEARCH = 10  # runs, at least, with which compare finds a rate: five rates with two seeds
README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def schedule(name, total):
    """It counts samples, of which the warm-up takes a tenth, so that it is the same for every rule and trace."""
    return ["--schedule", SCHEDULES[name].format(total=total, warmup=total // 10), "--schedule-unit", "samples"]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A folder of `rubato compare`. `passes` is how long one of its runs takes, in trainings of the model's epochs."""

    part: str
    name: str
    model: Model
    options: list
    runs: int
    passes: float = 1

    def folder(self, place):
        return place.out / self.part / self.name

    def left(self, place):
        """The number of runs that have not ended; a search may add some."""
        folder = self.folder(place)
        if (folder / "answer.json").exists():
            return 0
        return max(0, self.runs - sum(1 for kind in ("runs", "tune") for _ in folder.glob(f"{kind}/*/summary.json")))

    def cost(self, place):
        """The runs that are left, and the seconds they take one after the other."""
        runs = self.left(place)
        return runs, runs and runs * self.passes * place.seconds(self.model)

    def run(self, place):
        """Does what is left, and returns the answer."""
        return place.compare(self.folder(place), *self.model.options, *self.options)


class Place:
    """The program, the data and the folder, with the options that make an experiment smaller."""

    def __init__(self, arguments):
        self.rubato, self.data, self.out = arguments.rubato, arguments.data, arguments.out
        self.jobs, self.fewer, self.rates = arguments.jobs, arguments.seeds, arguments.rates

    def seeds(self, count):
        return min(count, self.fewer or count)

    def filled(self, options):
        return [str(option).format(data=self.data) for option in options]

    def compare(self, folder, *options):
        """Runs a comparison, of which finished runs are kept; ends the program if a rate is an end."""
        command = [self.rubato, "compare", *self.filled(options), "--digest", "never", "--quiet", "--jobs", str(self.jobs),
                   "--out", folder]
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        answer = json.loads((folder / "answer.json").read_text())
        for tuned in answer["tuning"]:
            if tuned["at_end"] or tuned["taken"] is None:
                sys.exit(f"{folder}: the best {tuned['option']} is at an end of those that were tried: {tuned['taken']}")
        if answer["untuned"] and "--lr" not in options:
            sys.exit(f"{folder}: {answer['untuned']}")
        return answer

    def traces(self, names=TRACES):
        """--trace and its file, for each name; makes the file if there is none."""
        found = []
        for name in names:
            file = self.out / "traces" / f"{name}.csv"
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                source, seconds = TRACES[name]
                policy = f"weak:samples-per-device=32,max-batch=512,seconds-per-step={seconds}"
                subprocess.run([self.rubato, "trace", "convert", source.format(data=self.data), "--out", file,
                                "--availability", policy], check=True, stdout=subprocess.DEVNULL)
            found += ["--trace", str(file)]
        return found

    def seconds(self, model):
        """Seconds of a CPU that a run of a model takes, without reading the data, which runs of a comparison share; trains
        one the first time, at a rate on which nothing depends."""
        file = self.out / "seconds.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        key = " ".join(map(str, [*model.options, *model.length()]))
        if key not in known:
            run = self.out / "first" / f"{os.getpid()}-{len(known)}"
            options = [*model.options, "--lr", 0.001, "--ref-batch", 32, "--minibatch", 32, "--trace", 32,
                       *model.length(), "--threads", 1]
            subprocess.run([self.rubato, "train", *self.filled(options), "--digest", "never", "--checkpoint-every", "never",
                            "--quiet", "--out", run], check=True, stdout=subprocess.DEVNULL)
            known[key] = json.loads((run / "summary.json").read_text())["wall_seconds"]
            file.write_text(json.dumps(known, indent=1) + "\n")
        return known[key]


def design(place, part, name, model, optimizer, shape, rules, traces=tuple(TRACES), seeds=None, axis=()):
    """A comparison of rules on traces; with an axis of another option, each of its values has a baseline and a rate."""
    seeds, values = place.seeds(seeds or model.seeds), max(1, len(axis) // 2)
    factors = 2 * (place.rates.bit_length() - 1) + 1
    options = [*OPTIMIZERS[optimizer], *schedule(shape, model.total()), *model.length(), "--ref-batch", 32, "--minibatch", 32,
               "--on-trace-end", "cycle", "--rule", ",".join(rules), *place.traces(traces),
               "--seed", f"1..{seeds}", "--margin", "baseline", "--rates", place.rates, *axis]
    return Comparison(part, name, model, options, values * (SEARCH + factors * seeds * (len(rules) * len(traces) + 1)))


def rule_comparisons(place):
    for name, model in MODELS.items():
        for optimizer in OPTIMIZERS:
            rules = RULES + (MORE[optimizer] if name == "mlp" else [])
            for shape in SCHEDULES:
                yield design(place, name, f"{optimizer}-{shape}", model, optimizer, shape, rules)


def size_comparisons(place):
    for name, (model, optimizer) in SIZES.items():
        yield design(place, "transfer", name, model, optimizer, "cosine", SIZE_RULES, ["bamboo"], 3)


def treatment_comparisons(place):
    """What becomes of the optimizer's state when the batch changes, and of weight decay, over whole trainings."""
    for optimizer, values in TREATMENTS.items():
        state = [part for value in values for part in ("--on-batch-change", value)]
        decay = [part for value in ("fixed", "timescale") for part in ("--decay-rule", value)]
        yield design(place, "treatments", f"{optimizer}-state", MODELS["mlp"], optimizer, "cosine", ["root", "adascale"],
                     seeds=5, axis=state)
        yield design(place, "treatments", f"{optimizer}-decay", MODELS["mlp"], optimizer, "cosine",
                     ["constant", "linear", "root"], seeds=5, axis=decay)


def iteration_comparison(place):
    """Every rule takes as many steps as it needs for the same scale-invariant iterations."""
    of = design(place, "iterations", "sgd", MODELS["mlp"], "sgd", "cosine", ["linear", "root", "adascale"], seeds=5)
    iterations = of.model.total() // 32
    options = list(map(str, of.options))
    for option, value in (("--schedule", f"cosine:total={iterations}"), ("--schedule-unit", "iterations")):
        options[options.index(option) + 1] = value
    at = options.index("--epochs")
    options[at:at + 2] = ["--budget", f"iterations={iterations}"]
    return dataclasses.replace(of, options=options, passes=2.5)  # root takes four times the samples, adascale up to that


def epoch_comparisons(place):
    """The baselines alone, with the epochs of the other comparisons and with twice as many."""
    for name, model in MODELS.items():
        for optimizer in OPTIMIZERS:
            for times in (1, 2):
                seeds = place.seeds(model.seeds)
                options = [*OPTIMIZERS[optimizer], *schedule("cosine", model.total(times)), *model.length(times),
                           "--ref-batch", 32, "--minibatch", 32, "--rule", "constant", "--trace", 32, "--seed", f"1..{seeds}"]
                yield Comparison("epochs", f"{name}-{optimizer}-x{times}", model, options, SEARCH + seeds, times)


def readme_command():
    """The options of README's comparison."""
    text = README.read_text(encoding="utf-8").replace("\\\n", "")
    return shlex.split(re.search(r"^\$ rubato compare (--model .*)$", text, re.MULTILINE)[1])


def comparisons(place):
    """All of them, in the order in which they run."""
    return [*epoch_comparisons(place), *rule_comparisons(place), *treatment_comparisons(place),
            iteration_comparison(place), *size_comparisons(place)]


def parser(words):
    """The arguments that all scripts have."""
    made = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("rubato")
    made.add_argument("data", type=pathlib.Path, help="a folder with mnist/ and fashion-mnist/ (IDX files) and traces/")
    made.add_argument("out", type=pathlib.Path, help="the folder of the experiments")
    made.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="runs at the same time [the CPUs]")
    made.add_argument("--seeds", type=int, help="so many seeds where there are more, for a trial in a folder of its own")
    made.add_argument("--rates", type=int, default=4, help="of compare; 1 for a trial [4]")
    made.add_argument("--cost", action="store_true", help="only say what is left to do; trains a run of each model")
    return made
