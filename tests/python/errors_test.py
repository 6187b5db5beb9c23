"""What users get wrong: exceptions with the text of the command line, and an interpreter that lives on."""

import math
import re
import unittest

import numpy
import rubato
import torch
from support import TestCase, rubato_program


class SameText(TestCase):
    def check(self, arguments, **options):
        """Of both: the message behind "rubato train: "."""
        code, _, errors = rubato_program("train", "--quiet", f"--out={self.folder()}/run", *arguments)
        self.assertEqual(code, 2, errors)
        with self.assertRaises(rubato.Error) as caught:
            rubato.train(**options)
        self.assertEqual(str(caught.exception), errors.strip().removeprefix("rubato train: "))
        return str(caught.exception)

    def test_values_out_of_their_range(self):
        self.assertIn("--lr", self.check(["--lr=-1"], lr=-1))
        self.check(["--rule=lineer"], rule="lineer")
        self.check(["--rule=adascale:smooth=2"], rule="adascale:smooth=2")
        self.check(["--cores=0"], cores=0)
        self.check(["--momentum=1"], momentum=1)
        self.check(["--trace=nothing.csv"], trace="nothing.csv")
        self.check(["--data=mnist:nowhere"], data="mnist:nowhere")
        self.check(["--seed=-5"], seed=-5)
        self.check(["--lr=nan"], lr=math.nan)

    def test_weights_that_are_a_module(self):
        with self.assertRaisesRegex(TypeError, r"weights: it is of type Linear; accepted: its state_dict\(\), or a file"):
            rubato.train("softmax", weights=torch.nn.Linear(784, 10))

    def test_options_that_contradict_each_other(self):
        self.check(["--clip-norm=1", "--clip-value=1"], clip_norm=1, clip_value=1)
        self.check(["--min-delta=1"], min_delta=1)
        self.check(["--model=quadratic", "--engine=libtorch"], model="quadratic", engine="libtorch")
        self.check(["--trace=33"], trace=33)
        self.check(["--hours=1"], hours=1)

    def test_run_folders(self):
        folder = self.folder()
        with self.assertRaisesRegex(rubato.Error, "exists already"):
            rubato.train("softmax", out=folder)
        with self.assertRaises(rubato.Error):
            rubato.train(resume=folder / "nothing")
        for options, name in (({"tensorboard": True}, "tensorboard"), ({"checkpoint_every": "2steps"}, "checkpoint-every"),
                              ({"tensorboard": True, "histograms": "*"}, "tensorboard")):
            with self.assertRaisesRegex(rubato.Error, f"--{name}: the run is kept nowhere"):
                rubato.train("softmax", **options)
        with self.assertRaisesRegex(rubato.Error, "rubato list data"):
            rubato.train(data="own")
        code, _, errors = rubato_program("train", "--model=own", f"--out={folder}/run")
        self.assertEqual((code, errors.count("\n")), (2, 1), errors)
        self.assertIn("the model is in the program that trained it", errors)

    def test_divergence_and_missed_targets_have_the_result(self):
        with self.assertRaisesRegex(rubato.Diverged, "try a lower --lr") as caught:
            rubato.train("mnist-cnn", lr=1e9, epochs=1, samples=6400)
        self.assertGreater(caught.exception.result.steps.rows, 0)
        self.assertFalse(caught.exception.result.steps["applied"][-1])
        with self.assertRaisesRegex(rubato.TargetMissed, "below --target-accuracy 99.9 %") as caught:
            rubato.train("softmax", epochs=1, samples=640, target_accuracy=99.9)
        self.assertLess(caught.exception.result.test_accuracy, 0.999)

    def test_exceptions_are_of_a_family(self):
        for kind in (rubato.OutOfMemory, rubato.OutputError, rubato.TrainingError, rubato.Diverged, rubato.TargetMissed):
            self.assertTrue(issubclass(kind, rubato.Error))
        self.assertTrue(issubclass(rubato.OutOfMemory, MemoryError))
        with self.assertRaises(rubato.OutOfMemory):
            rubato.train("mlp:hidden=1048576/1048576", epochs=1)
        with self.assertRaisesRegex(rubato.TrainingError, "forward of"):
            rubato.train(torch.nn.Linear(3, 2), (torch.rand(64, 2), torch.zeros(64).long()), trace=32)


class Arrays(TestCase):
    """What is no number is said where it is, before anything is trained."""

    def test_of_numbers_that_are_none(self):
        inputs, targets = torch.rand(64, 3), torch.zeros(64).long()
        inputs[17, 2] = math.nan
        with self.assertRaisesRegex(rubato.Error, r"data: 'x' has nan at \[17, 2\]; accepted: finite numbers"):
            rubato.train("softmax", (inputs, targets), trace=32)
        with self.assertRaisesRegex(rubato.Error, r"data: 'y' has inf at \[1\]"):
            rubato.train("mlp", (torch.rand(2, 3), torch.tensor([0, math.inf])), trace=32)

        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(3, 2)

            def forward(self, x, y):
                return self.linear(x + y)

        with self.assertRaisesRegex(rubato.Error, r"data: 'x\[1\]' has nan at \[17, 2\]"):
            rubato.train(Two(), ([torch.rand(64, 3), inputs], targets), trace=32)


class WaysOut(TestCase):
    """What is left of a run is said behind what ended it."""

    def test_of_output_that_cannot_be_written(self):
        for every, words in (("3steps", r"the checkpoints before it are kept; to go on: rubato.train\(resume='{0}'\)$"),
                             ("6steps", r"the weights after 6 steps are in {0}/weights.safetensors$")):
            folder = self.folder() / "run"

            def on_step(step):
                if step["step"] == 4:
                    (folder / "metrics.jsonl").unlink()

            with self.assertRaisesRegex(rubato.OutputError, r"(?s)metrics.jsonl: has gone.*\n" + words.format(folder)):
                rubato.train("softmax", trace=32, on_step=on_step, checkpoint_every=every, out=folder)

    def test_of_memory(self):
        class Hungry(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(1, 3)

            def forward(self, x):
                return self.linear(x) + 0.0 * torch.zeros(int(x.max().item()), 100000).sum()

        inputs, targets = torch.ones(320, 1), torch.arange(320) % 3
        # 80 TB in the step that has it.
        inputs[100] = 2e8
        options = {"trace": 32, "checkpoint_every": "never"}
        with self.assertRaisesRegex(rubato.OutOfMemory, "^((?!checkpoint|nothing).)*$"):
            rubato.train(Hungry(), (inputs, targets), trace=32)
        folder = self.folder() / "run"
        with self.assertRaises(rubato.OutOfMemory) as caught:
            rubato.train(Hungry(), (inputs, targets), out=folder, **options)
        steps, file, resume = re.search(r"\nafter (\d+) steps; the checkpoint is (.*); to go on: rubato.train\(model, data, resume='(.*)'\)$",
                                        str(caught.exception)).groups()
        self.assertGreater(int(steps), 0)
        self.assertEqual((file, resume), (f"{folder}/checkpoints/step-{steps}.safetensors", str(folder)))
        with self.assertRaises(rubato.OutOfMemory):
            rubato.train(Hungry(), (inputs, targets), resume=folder)


class Arguments(TestCase):
    def test_names(self):
        for words, text in (({"rulee": 1}, "did you mean rule?"), ({"ref-batch": 1}, "unexpected keyword"),
                            ({"help": True}, "unexpected keyword"), ({"quiet": True}, "unexpected keyword"),
                            ({"log_steps": 3}, "nothing is printed")):
            with self.assertRaisesRegex(TypeError, text):
                rubato.train("softmax", **words)

    def test_of_a_wrong_type_are_not_printed(self):
        with self.assertRaises(TypeError) as caught:
            rubato.train("softmax", optimizer=torch.optim.SGD([torch.zeros(1)], lr=0.1))
        self.assertEqual(str(caught.exception), "optimizer: it is of type SGD; accepted: a number, text, True or False")
        with self.assertRaises(rubato.Error) as caught:
            rubato.train("softmax", trace=[(list(range(10000)), 2)])
        self.assertLess(len(str(caught.exception)), 120)

    def test_several_outputs_for_a_loss_of_one(self):
        class Two(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(2, 3)

            def forward(self, x):
                return self.linear(x), x

        with self.assertRaisesRegex(rubato.Error, "2 outputs, where one tensor is taken") as caught:
            rubato.train(Two(), (torch.rand(64, 2), torch.arange(64) % 3), trace=32)
        self.assertNotIn("::", str(caught.exception))

    def test_anything_at_all(self):
        # Whatever it is, it is an exception, and the interpreter lives.
        strange = [object(), b"bytes", [], {}, (), float("inf"), -1, 10**30, "", "\0", "ä" * 5000, numpy.array(3),
                   torch.tensor(1), lambda: None, 1j, type, True, "\ud800", [1, 2], "=", "--lr=1", "nan"]
        names = [name for name in rubato._options.describe.__globals__["_BY_NAME"]]
        refused = 0
        for value in strange:
            for name in names:
                if name in ("threads", "epochs", "top-k", "keep", "patience", "exact", "log-noise", "log-minibatches", "keep-best",
                            "nesterov", "seed"):
                    continue
                word = name.replace("-", "_")
                try:
                    rubato.train(**{"model": "softmax", "epochs": 1, "samples": 64, "trace": 32, word: value})
                except (rubato.Error, TypeError, ValueError):
                    refused += 1
        self.assertGreater(refused, len(strange) * len(names) / 3)


if __name__ == "__main__":
    unittest.main()
