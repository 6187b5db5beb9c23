"""What is written as users of PyTorch write it: data sets and loaders, several outputs, predictions, rates that callbacks set."""

import contextlib
import io
import json
import unittest
import warnings
from typing import Dict, List, Tuple

import numpy
import rubato
import torch
from support import TestCase
from torch import nn
from torch.nn import functional as F
from torch.utils.data import (DataLoader, Dataset, IterableDataset, RandomSampler, Subset, TensorDataset,
                              WeightedRandomSampler)

OPTIONS = {"trace": 64, "ref_batch": 64, "epochs": 3, "lr": 0.2}


def points(seed=0, samples=512):
    """Three classes of points in the plane."""
    random = numpy.random.RandomState(seed)
    targets = random.randint(0, 3, samples)
    inputs = numpy.array([[0, 2], [2, -1], [-2, -1]])[targets] + random.normal(scale=0.3, size=(samples, 2))
    return torch.from_numpy(inputs.astype(numpy.float32)), torch.from_numpy(targets)


def linear():
    torch.manual_seed(1)
    return nn.Linear(2, 3)


class Columns(nn.Module):
    """Takes the coordinates one by one."""

    def __init__(self):
        super().__init__()
        self.linear = linear()

    def forward(self, x, y):
        return self.linear(torch.stack([x, y], dim=1))


class BatchSize(TestCase):
    def test_is_a_constant_trace(self):
        wanted = rubato.train("softmax", trace=64, epochs=1, samples=3200)
        found = rubato.train("softmax", batch_size=64, epochs=1, samples=3200)
        self.assertEqual(found.sha256, wanted.sha256)
        self.assertEqual(set(found.steps["batch"].tolist()), {64})
        with self.assertRaisesRegex(TypeError, "batch_size: the trace says it"):
            rubato.train("softmax", batch_size=64, trace=64)
        for wrong in (64.0, "64", True):
            with self.assertRaisesRegex(TypeError, "a whole number"):
                rubato.train("softmax", batch_size=wrong)

    def test_the_rate_that_the_rule_makes_is_said(self):
        def said(**options):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                rate = rubato.train("softmax", samples=640, **options).steps["lr"][0]
            return rate, [str(warning.message) for warning in caught]

        rate, texts = said(batch_size=64, lr=0.1)
        self.assertEqual(rate, 0.05)
        self.assertRegex("\n".join(texts), "rule linear takes steps of batch 64 with lr 0.05\nwith --ref-batch 64 .* lr 0.1")
        self.assertEqual(said(batch_size=64, lr=0.1, ref_batch=64), (0.1, []))
        self.assertEqual(said(batch_size=64), (0.005, []))


class Pairs(Dataset):
    """Samples as numpy arrays and Python's numbers, as data sets have them."""

    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs.numpy(), targets.tolist()
        self.read = 0

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        self.read += 1
        return self.inputs[index], self.targets[index]


class Stream(IterableDataset):
    def __init__(self, pairs):
        self.pairs = pairs

    def __iter__(self):
        return (self.pairs[i] for i in range(len(self.pairs)))


class DataSets(TestCase):
    def test_are_read_once_in_their_order(self):
        inputs, targets = points()
        wanted = rubato.train(linear(), (inputs, targets), **OPTIONS).sha256
        generator = torch.random.get_rng_state()
        for make in (lambda pairs: pairs, lambda pairs: DataLoader(pairs, batch_size=50, shuffle=True),
                     lambda pairs: DataLoader(pairs, batch_size=7, drop_last=True), Stream,
                     lambda pairs: DataLoader(Stream(pairs), batch_size=20), lambda pairs: Subset(pairs, range(512))):
            pairs = Pairs(inputs, targets)
            torch.random.set_rng_state(generator)
            model = linear()
            before = torch.random.get_rng_state()
            result = rubato.train(model, make(pairs), validation=make(pairs), **OPTIONS)
            self.assertEqual(result.sha256, wanted)
            self.assertEqual(pairs.read, 2 * 512)
            self.assertGreater(result.test_accuracy, 0.9)
            self.assertTrue(torch.equal(torch.random.get_rng_state(), before))

    def test_several_inputs(self):
        inputs, targets = points()
        wanted = rubato.train(Columns(), ([inputs[:, 0], inputs[:, 1]], targets), **OPTIONS).sha256
        flat = TensorDataset(inputs[:, 0], inputs[:, 1], targets)

        class Nested(Dataset):
            def __len__(self):
                return len(targets)

            def __getitem__(self, index):
                return (inputs[index, 0], inputs[index, 1]), targets[index]

        for data in (flat, Subset(flat, range(512)), DataLoader(flat, batch_size=64), Nested()):
            self.assertEqual(rubato.train(Columns(), data, **OPTIONS).sha256, wanted)

    def test_what_is_none_is_refused(self):
        inputs, targets = points()
        pairs = Pairs(inputs, targets)

        class Of(Dataset):
            def __init__(self, sample):
                self.sample = sample

            def __len__(self):
                return 64

            def __getitem__(self, index):
                return self.sample(index)

        for data, words in ((DataLoader(pairs, sampler=WeightedRandomSampler([1.0] * 512, 512)), "a sampler of its own"),
                            (DataLoader(pairs, sampler=RandomSampler(pairs, replacement=True)), "a sampler of its own"),
                            (DataLoader(pairs, batch_size=None), "a sampler of its own"),
                            (Of(lambda i: {"x": inputs[i], "y": targets[i]}), "of type dict; accepted: \\(inputs, targets\\)"),
                            (Of(lambda i: inputs[i]), "of type Tensor; accepted: \\(inputs, targets\\)"),
                            (Of(lambda i: (inputs[i], "text")), "of type str; accepted: tensors"),
                            (Of(lambda i: (torch.zeros(i + 1), 1)), "cannot be read: .*; accepted: .*one shape"),
                            (Of(lambda i: (object(), 1)), "cannot be read: ")):
            with self.assertRaisesRegex(rubato.Error, f"^data: .*{words}"):
                rubato.train(linear(), data, **OPTIONS)


class Share(TestCase):
    def test_is_held_out_of_several_inputs_as_of_one(self):
        inputs, targets = points()
        for validation in (0.25, "0.1,seed=3"):
            one = rubato.train(linear(), (inputs, targets), validation=validation, **OPTIONS)
            several = rubato.train(Columns(), ([inputs[:, 0], inputs[:, 1]], targets), validation=validation, **OPTIONS)
            self.assertEqual(several.sha256, one.sha256)
            self.assertEqual(several.epochs["test_loss"].tolist(), one.epochs["test_loss"].tolist())
        with self.assertRaisesRegex(rubato.Error, "^--validation: "):
            rubato.train(Columns(), ([inputs[:4, 0], inputs[:4, 1]], targets[:4]), validation=0.01, minibatch=1, trace=1)


class Weights(TestCase):
    def setUp(self):
        self.data = points()
        self.weights = torch.rand(512, generator=torch.Generator().manual_seed(3))

    def sha(self, sampler, **options):
        return rubato.train(linear(), self.data, sampler=sampler, **{**OPTIONS, **options}).sha256

    def test_of_samples_in_every_form(self):
        wanted = self.sha(self.weights)
        for given in (self.weights.double(), self.weights.numpy(), self.weights.tolist(),
                      WeightedRandomSampler(self.weights, 512)):
            self.assertEqual(self.sha(given), wanted)
        self.assertEqual(self.sha(self.weights, threads=1, cores=3), wanted)
        self.assertNotEqual(self.sha(None), wanted)
        self.assertNotEqual(self.sha(torch.ones(512)), wanted)

    def test_balance_classes(self):
        targets = self.data[1]
        self.assertEqual(self.sha("weighted:balanced"), self.sha(1 / targets.bincount().double()[targets]))

    def test_are_those_of_the_samples_that_are_not_held_out(self):
        inputs, targets = self.data
        columns = [inputs[:, 0], inputs[:, 1]], targets
        for sampler in (self.weights, "weighted:balanced"):
            one = self.sha(sampler, validation=0.25)
            several = rubato.train(Columns(), columns, sampler=sampler, validation=0.25, **OPTIONS)
            self.assertEqual(several.sha256, one)

    def test_are_for_data_with_a_name_too(self):
        found = rubato.train("softmax", sampler=torch.ones(12000), trace=64, samples=3200)
        self.assertNotEqual(found.sha256, rubato.train("softmax", trace=64, samples=3200).sha256)

    def test_are_given_again_to_a_resume(self):
        wanted = self.sha(self.weights)
        folder = self.folder() / "run"
        self.sha(self.weights, epochs=1, out=folder)
        for sampler, words in ((None, "^--sampler own: the weights are in the program"), (torch.ones(512), "sampler was weighted by")):
            with self.assertRaisesRegex(rubato.Error, words):
                rubato.train(linear(), self.data, sampler=sampler, resume=folder, epochs=3)
        found = rubato.train(linear(), self.data, sampler=self.weights, resume=folder, epochs=3)
        self.assertEqual(found.sha256, wanted)

    def test_what_is_none_is_refused(self):
        for sampler, words in ((torch.ones(511), "^--sampler own: 511 weights for 512 training samples; accepted: one for each"),
                               (torch.arange(512) - 1.0, "^--sampler own: sample 0 has the weight -1; accepted: finite"),
                               (torch.full((512,), float("nan")), "sample 0 has the weight nan"),
                               (torch.zeros(512), "have no sum to draw by"),
                               (torch.ones(512, 2), r"^sampler: torch.float32 of shape \[512, 2\]; accepted: one weight for each"),
                               (["a"] * 512, "^sampler: .*; accepted: a list of numbers"),
                               (WeightedRandomSampler(torch.ones(512), 100), "^sampler: 100 draws from 512 samples with repl"),
                               (WeightedRandomSampler(torch.ones(512), 512, False), "512 samples without replacement; accepted: as "),
                               ("weighted:column=w", "the data have no columns; accepted: .* sampler=WEIGHTS")):
            with self.assertRaisesRegex(rubato.Error, words):
                self.sha(sampler)
        with self.assertRaisesRegex(TypeError, "^sampler: it is of type float; accepted: the name of a sampler"):
            self.sha(1.0)


class Probabilities(TestCase):
    def test_of_classes_are_targets(self):
        inputs, targets = points()
        soft = 0.9 * nn.functional.one_hot(targets, 3).float() + 0.1 / 3
        result = rubato.train(linear(), (inputs, soft), validation=(inputs, soft), loss="cross-entropy", **OPTIONS)
        # Smoothed targets are those that label smoothing makes.
        smooth = rubato.train(linear(), (inputs, targets), validation=(inputs, targets), label_smoothing=0.1, **OPTIONS)
        numpy.testing.assert_allclose(result.steps["loss"], smooth.steps["loss"], rtol=1e-4)
        self.assertGreater(result.test_accuracy, 0.9)
        self.assertEqual(result.test_accuracy, smooth.test_accuracy)
        outputs = result.predict(inputs)
        found = result.evaluate(inputs, soft)
        self.assertAlmostEqual(found["loss"], F.cross_entropy(outputs, soft).item(), places=5)
        self.assertEqual(found["accuracy"], result.test_accuracy)
        several = rubato.train(Columns(), ([inputs[:, 0], inputs[:, 1]], soft), loss="cross-entropy", **OPTIONS)
        numpy.testing.assert_allclose(several.steps["loss"], result.steps["loss"], rtol=1e-4)

    def test_train_models_with_a_name(self):
        inputs, targets = points()
        soft = F.softmax(3 * F.one_hot(targets, 3).float(), dim=1)
        result = rubato.train("softmax", (inputs, soft), validation=0.25, loss="cross-entropy", **OPTIONS)
        self.assertGreater(result.test_accuracy, 0.9)
        self.assertTrue(torch.allclose(result.module(inputs).exp().sum(1), torch.ones(512)))

    def test_what_is_none_is_refused(self):
        inputs, targets = points()
        soft = F.one_hot(targets, 3).double()
        soft[7, 0] += 0.01
        for data in ((inputs, soft), ([inputs[:, 0], inputs[:, 1]], soft)):
            with self.assertRaisesRegex(rubato.Error, r"at \[7\] sum to .*; accepted: probabilities of the classes"):
                rubato.train(linear() if data[0] is inputs else Columns(), data, loss="cross-entropy", **OPTIONS)
        good = F.one_hot(targets, 3).double()
        for words, options in (("^--metric perplexity: .* probabilities", {"metric": "perplexity"}),
                               ("^--loss cross-entropy:ignore=1: ", {"loss": "cross-entropy:ignore=1"}),
                               ("^--sampler weighted:balanced: the samples have no classes", {"sampler": "weighted:balanced"})):
            with self.assertRaisesRegex(rubato.Error, words):
                rubato.train(linear(), (inputs, good), validation=(inputs, good), **{"loss": "cross-entropy", **OPTIONS, **options})


class Trained(TestCase):
    def check(self, model, data, held, **options):
        result = rubato.train(model, data, validation=held, **{**OPTIONS, **options})
        inputs, targets = held
        found = result.evaluate(inputs, targets)
        self.assertEqual(found["samples"], len(targets))
        self.assertAlmostEqual(found["loss"], result.epochs["test_loss"][-1], places=5)
        self.assertEqual(found.get("accuracy"), result.test_accuracy)
        outputs = result.predict(inputs)
        if result.test_accuracy is not None:
            self.assertAlmostEqual((outputs.argmax(dim=-1) == torch.as_tensor(targets)).float().mean().item(),
                                   result.test_accuracy, places=5)
        # Of some samples it is what it is of all.
        self.assertTrue(torch.allclose(result.predict(inputs[:3]), outputs[:3], atol=1e-5))
        return result

    def test_on_other_samples(self):
        result = self.check(linear(), points(), points(1))
        inputs, _ = points(2)
        self.assertTrue(torch.allclose(result.predict(inputs), result.module(inputs), atol=1e-6))
        inputs, _ = points()
        self.check(nn.Linear(2, 1), (inputs, inputs.sum(1, keepdim=True)), (inputs[:64], inputs[:64].sum(1, keepdim=True)))
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(result.predict(inputs).dtype, torch.float32)

    def test_pixels_are_normalised_as_those_of_training(self):
        random = numpy.random.RandomState(3)
        pixels = random.randint(0, 256, (256, 16, 16), dtype=numpy.uint8)
        pixels[:128] //= 2
        targets = (numpy.arange(256) < 128).astype(numpy.int64)
        order = random.permutation(256)
        pixels, targets = pixels[order], targets[order]
        for model in ("mlp:hidden=8", "toy-net", nn.Sequential(nn.Flatten(), nn.Linear(256, 2))):
            # Pixels of one value alone, which would be nothing if they were normalised by themselves.
            self.check(model, (pixels[:192], targets[:192]), (pixels[192:], targets[192:]), lr=0.01)

    def test_of_named_models_and_data(self):
        result = rubato.train("softmax", epochs=1)
        images = numpy.random.RandomState(1).randint(0, 256, (20, 28, 28), dtype=numpy.uint8)
        outputs = result.predict(images)
        self.assertEqual(outputs.shape, (20, 10))
        self.assertEqual(result.evaluate(images, outputs.argmax(1))["accuracy"], 1)
        with self.assertRaisesRegex(rubato.Error, r"inputs: samples are F32 of shape \[1, 28, 28\]; accepted: U8"):
            result.predict(numpy.zeros((3, 1, 28, 28), dtype=numpy.float32))
        with self.assertRaisesRegex(rubato.Error, "is not data"):
            result.predict("digits")

    def test_of_several_tensors(self):
        inputs, targets = points()
        columns = [inputs[:, 0], inputs[:, 1]]
        result = rubato.train(Columns(), (columns, targets), validation=(columns, targets), **OPTIONS)
        self.assertAlmostEqual(result.evaluate(columns, targets)["loss"], result.epochs["test_loss"][-1], places=6)
        self.assertTrue(torch.equal(result.predict(columns), result.module(*columns)))
        with self.assertRaisesRegex(rubato.Error, "inputs: 1 tensors; accepted: 2"):
            result.predict(columns[:1])

    def test_after_a_resume(self):
        folder = self.folder() / "run"
        rubato.train(linear(), points(), out=folder, **OPTIONS)
        result = rubato.train(linear(), points(), resume=folder, epochs=4)
        self.assertGreater(result.evaluate(*points(1))["accuracy"], 0.9)


class Answers(TestCase):
    """What callbacks return."""

    def test_rates(self):
        result = rubato.train(linear(), points(), on_epoch=lambda epoch: {"lr": 0.2 / (epoch["epoch"] + 2)}, **OPTIONS)
        self.assertEqual(result.steps["lr"].tolist(), [0.2] * 8 + [0.2 / 2] * 8 + [0.2 / 3] * 8)
        # The rule and the schedule follow it.
        result = rubato.train(linear(), points(), on_step=lambda step: {"lr": 0.01}, trace=128, epochs=1, lr=0.2, ref_batch=64)
        self.assertEqual(result.steps["lr"].tolist(), [0.4] + [0.02] * 3)

    def test_rates_are_kept(self):
        folder = self.folder() / "run"
        options = {"rule": "adascale", "momentum": 0.9, **OPTIONS}

        def at_the_tenth(step):
            return {"lr": 0.03} if step["step"] == 9 else None

        whole = rubato.train(linear(), points(), on_step=at_the_tenth, **options)
        self.assertNotEqual(whole.sha256, rubato.train(linear(), points(), **options).sha256)
        first = rubato.train(linear(), points(), out=folder, on_step=lambda step: at_the_tenth(step) if step["step"] < 12 else False,
                             **options)
        self.assertEqual(first.steps.rows, 13)
        # Nobody sets it again.
        self.assertEqual(rubato.train(linear(), points(), resume=folder).sha256, whole.sha256)

    def test_metrics(self):
        folder = self.folder() / "run"
        result = rubato.train(linear(), points(), out=folder, on_epoch=lambda epoch: {"mine": torch.tensor(epoch["epoch"] + 0.5)},
                              on_step=lambda step: {"twice": 2 * step["loss"], "lr": 0.1} if step["step"] % 2 else None, **OPTIONS)
        self.assertEqual(result.epochs["mine"].tolist(), [0.5, 1.5, 2.5])
        twice, loss = result.steps["twice"], result.steps["loss"]
        self.assertEqual(twice[1::2].tolist(), (2 * loss[1::2]).tolist())
        self.assertTrue(numpy.isnan(twice[0::2]).all())
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        own = [line for line in lines if line["kind"] == "own"]
        self.assertEqual(own[0], {"kind": "own", "step": 1, "lr": 0.1, "metrics": {"twice": twice[1]}})
        self.assertEqual(own[-1], {"kind": "own", "epoch": 2, "metrics": {"mine": 2.5}})
        # A resume reads over them.
        self.assertEqual(rubato.train(linear(), points(), resume=folder, epochs=4).epochs.rows, 1)

    def test_wrong_ones(self):
        for answer, kind, words in (({"lr": -1}, rubato.Error, "on_step: lr -1.0; accepted: finite numbers of at least 0"),
                                    ({"lr": float("nan")}, rubato.Error, "lr nan"),
                                    ({"loss": 3}, rubato.Error, "'loss' is one of rubato's metrics"),
                                    ({"mine": [1, 2]}, TypeError, "on_step: 'mine' is of type list; accepted: a number"),
                                    ({3: 4}, TypeError, "a metric's name is of type int")):
            with self.assertRaisesRegex(kind, words):
                rubato.train(linear(), points(), on_step=lambda step: answer, **OPTIONS)


class Shown(TestCase):
    def lines(self, **options):
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            rubato.train(linear(), points(), progress=True, **{**OPTIONS, **options})
        return shown.getvalue()

    def test_progress(self):
        lines = self.lines(validation=points(1)).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[1], r"^epoch 2/3  8 steps  train loss 0\.\d{4}  test loss 0\.\d{4}  accuracy \d+\.\d\d %  \S+ samples/s$")
        heard = []
        self.assertRegex(self.lines(on_epoch=heard.append), r"epoch 3/3  8 steps  train loss 0\.\d{4}  \S+ samples/s")
        self.assertEqual(len(heard), 3)

    def test_the_step_under_way_is_drawn_over(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        shown = Terminal()
        with contextlib.redirect_stderr(shown), self.assertRaises(KeyError):
            rubato.train(linear(), points(), progress=True, on_step=lambda step: {}[step["step"]] if step["step"] > 3 else None,
                         **OPTIONS)
        self.assertRegex(shown.getvalue(), r"\r\x1b\[2Kepoch 1/3 .* step 1  .*loss \d\.\d{4}")
        self.assertTrue(shown.getvalue().endswith("\r\x1b[2K"))


class SeveralOutputs(TestCase):
    def trained(self, forward, loss):
        torch.manual_seed(1)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 3)
                self.size = nn.Linear(2, 1)

        Net.forward = forward
        # A trace, as TorchScript finds no source of a method that a class gets later.
        return rubato.train(Net(), points(), validation=points(1), loss=loss, **OPTIONS)

    def test_losses_take_them_one_by_one_or_together(self):
        def by_one(logits, size, target):
            return F.cross_entropy(logits, target) + 0.1 * size.square().mean()

        def of_tuple(outputs: Tuple[torch.Tensor, torch.Tensor], target: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(outputs[0], target) + 0.1 * outputs[1].square().mean()

        def of_list(outputs: List[torch.Tensor], target: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(outputs[0], target) + 0.1 * outputs[1].square().mean()

        def of_dict(outputs: Dict[str, torch.Tensor], target: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(outputs["logits"], target) + 0.1 * outputs["size"].square().mean()

        class OfDict(nn.Module):
            def forward(self, outputs: Dict[str, torch.Tensor], target: torch.Tensor) -> torch.Tensor:
                return F.cross_entropy(outputs["logits"], target) + 0.1 * outputs["size"].square().mean()

        tuples = lambda self, x, *rest: (self.linear(x), self.size(x))  # noqa: E731
        dicts = lambda self, x, *rest: {"logits": self.linear(x), "size": self.size(x)}  # noqa: E731
        wanted = self.trained(tuples, by_one)
        for forward, loss in ((tuples, of_tuple), (tuples, of_list), (dicts, by_one), (dicts, of_dict), (dicts, OfDict())):
            found = self.trained(forward, loss)
            self.assertEqual(found.sha256, wanted.sha256)
            self.assertEqual(found.epochs["test_loss"].tolist(), wanted.epochs["test_loss"].tolist())
        self.assertEqual(set(found.module(points(2)[0])), {"logits", "size"})
        self.assertEqual([tuple(output.shape) for output in found.predict(points(2)[0])], [(512, 3), (512, 1)])
        for forward, loss, words in ((tuples, of_dict, r"takes Dict\[str, Tensor\], and the model returns a tuple"),
                                     (lambda self, x, *rest: self.linear(x), of_dict, "the model returns a tensor"),
                                     (dicts, None, "2 outputs, where one tensor is taken")):
            with self.assertRaisesRegex(rubato.Error, words):
                self.trained(forward, loss)
        with self.assertRaisesRegex(rubato.Error, "models with a name return one tensor"):
            rubato.train("softmax", loss=of_dict)


if __name__ == "__main__":
    unittest.main()
