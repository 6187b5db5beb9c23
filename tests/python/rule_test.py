"""A rule of one's own."""

import json
import math
import os
import signal
import unittest

import rubato
import torch
from support import TestCase, python, rubato_program

OPTIONS = {"model": "softmax", "trace": [(64, 2), (192, 3), (128, 4)], "on_trace_end": "cycle", "epochs": 1, "samples": 2560}


def linear(batch, statistics):
    return statistics["scale"]


class Averaging:
    """The mean of the scales so far."""

    def __init__(self):
        self.sum, self.count = 0.0, 0

    def __call__(self, batch, statistics):
        self.sum += statistics["scale"]
        self.count += 1
        return self.sum / self.count

    def state(self):
        return [self.sum, self.count]

    def load_state(self, numbers):
        self.sum, self.count = numbers


class Rule(TestCase):
    def test_has_the_bits_of_the_built_in_one(self):
        for model in ("softmax", "mnist-cnn"):
            options = OPTIONS | {"model": model}
            wanted = rubato.train(rule="linear", **options)
            result = rubato.train(rule=linear, **options)
            self.assertEqual(result.sha256, wanted.sha256)
            for name in ("lr", "gain", "iterations", "loss"):
                self.assertEqual(result.steps[name].tolist(), wanted.steps[name].tolist(), name)
            self.assertNotEqual(rubato.train(rule=lambda batch, statistics: 1, **options).sha256, wanted.sha256)

    def test_is_called_once_in_a_step_with_what_the_step_is(self):
        seen = []

        def rule(batch, statistics):
            seen.append((batch, statistics))
            return 0.5

        result = rubato.train(rule=rule, schedule="step:every=10,gamma=0.1", schedule_unit="steps", lr=0.25, ref_batch=64, **OPTIONS)
        self.assertEqual([batch for batch, _ in seen], result.steps["batch"].tolist())
        self.assertEqual(len(seen), 20)
        self.assertEqual(seen[1][1], {"lr": 0.25, "scale": 3.0, "ref_batch": 64, "minibatch": 32, "minibatches": 6, "epoch_size": 12000,
                                       "momentum": 0.5})
        self.assertAlmostEqual(seen[10][1]["lr"], 0.025)
        self.assertEqual([0.5 * statistics["lr"] for _, statistics in seen], result.steps["lr"].tolist())

    def test_sees_the_noise_that_is_logged(self):
        ratios = []

        def rule(batch, statistics):
            for group in statistics["groups"]:
                ratios.append(group["minibatch_square"] / group["mean_square"])
            return linear(batch, statistics)

        noisy = {"log_noise": True, "no_decay": "*.bias", "engine": "libtorch"}
        result = rubato.train(rule=rule, **noisy, **OPTIONS)
        self.assertEqual(len(ratios), 2 * result.steps.rows)
        # The mean of squares is at least the square of the mean.
        self.assertTrue(all(ratio >= 1 for ratio in ratios))
        self.assertEqual(result.sha256, rubato.train(rule="linear", **noisy, **OPTIONS).sha256)

    def test_is_in_the_run_folder_and_given_again(self):
        folder = self.folder() / "run"
        whole = rubato.train(rule=Averaging(), out=self.folder() / "run", **OPTIONS)
        first = rubato.train(rule=Averaging(), out=folder, on_step=lambda step: step["step"] < 7, **OPTIONS)
        self.assertEqual(first.steps.rows, 8)
        self.assertIn('rule = "own"', (folder / "config.toml").read_text())
        self.assertEqual(json.loads((folder / "summary.json").read_text())["rule"], "own")
        for options in ({}, {"rule": "linear"}):
            with self.assertRaisesRegex(rubato.Error, "rule"):
                rubato.train(resume=folder, **options)
        # One that remembers nothing does not go on with what remembers something.
        with self.assertRaisesRegex(rubato.Error, r"accepted: one with state\(\)"):
            rubato.train(resume=folder, rule=linear)
        code, _, errors = rubato_program("train", f"--resume={folder}")
        self.assertEqual(code, 2, errors)
        self.assertIn("the rule is in the program that trained it", errors)
        rule = Averaging()
        result = rubato.train(resume=folder, rule=rule)
        self.assertEqual(result.steps["step"].tolist(), list(range(8, 20)))
        self.assertEqual(result.sha256, whole.sha256)
        self.assertEqual(rule.count, 20)
        code, out, errors = rubato_program("eval", f"--run={folder}", "--data=digits")
        self.assertEqual(code, 0, errors)

    def test_what_it_raises_ends_training_before_the_step(self):
        folder = self.folder() / "run"
        lines = []

        def broken(batch, statistics):
            lines.append(batch)
            if len(lines) == 6:
                raise KeyError("mine")
            return linear(batch, statistics)

        with self.assertWarnsRegex(RuntimeWarning, r"step-5.safetensors\nto go on: rubato.train\(rule=rule, resume="):
            try:
                rubato.train(rule=broken, out=folder, **OPTIONS)
            except KeyError as error:
                result, traceback = error.result, error.__traceback__
        while traceback.tb_next:
            traceback = traceback.tb_next
        # Where it was raised.
        self.assertEqual(traceback.tb_frame.f_code.co_name, "broken")
        self.assertEqual(result.steps["step"].tolist(), [0, 1, 2, 3, 4])
        result = rubato.train(resume=folder, rule=linear)
        self.assertEqual(result.sha256, rubato.train(rule="linear", **OPTIONS).sha256)
        # Of the first step, and without a folder.
        with self.assertRaises(ZeroDivisionError) as caught:
            rubato.train(rule=lambda batch, statistics: 1 / 0, **OPTIONS)
        self.assertEqual(caught.exception.result.steps.rows, 0)

    def test_control_c_in_it(self):
        folder = self.folder() / "run"
        calls = []

        def rule(batch, statistics):
            calls.append(batch)
            if len(calls) == 5:
                os.kill(os.getpid(), signal.SIGINT)
            return linear(batch, statistics)

        options = OPTIONS | {"epochs": 100000, "samples": None}
        with self.assertWarnsRegex(RuntimeWarning, "the checkpoint is"), self.assertRaises(KeyboardInterrupt) as caught:
            rubato.train(rule=rule, out=folder, **options)
        steps = caught.exception.result.steps.rows
        self.assertGreaterEqual(steps, 4)
        result = rubato.train(resume=folder, rule=linear, on_step=lambda step: step["step"] < 19)
        self.assertEqual(result.steps["step"].tolist(), list(range(steps, 20)))
        self.assertEqual(result.sha256, rubato.train(rule="linear", **OPTIONS).sha256)

    def test_answers_a_number(self):
        for answer in ("one", None, [1], 1j):
            with self.assertRaisesRegex(TypeError, "rule: it returned an object of type .*; accepted: a number") as caught:
                rubato.train(rule=lambda batch, statistics: answer, **OPTIONS)
        self.assertIn("complex", str(caught.exception))
        for answer in (-0.5, math.nan, math.inf):
            with self.assertRaisesRegex(rubato.Error, "rule: it returned .* for a step of batch 64; accepted: finite"):
                rubato.train(rule=lambda batch, statistics: answer, **OPTIONS)
        self.assertEqual(rubato.train(rule=lambda batch, statistics: torch.tensor(0.5), **OPTIONS).steps["gain"][0], 0.5)
        with self.assertRaisesRegex(TypeError, "rule: it is of type dict"):
            rubato.train("softmax", rule={})

        class Half:
            def __call__(self, batch, statistics):
                return 1

            def state(self):
                return []

        with self.assertRaisesRegex(TypeError, r"one of state\(\) and load_state\(\)"):
            rubato.train("softmax", rule=Half())

    def test_a_second_control_c_in_it_leaves_no_checkpoint(self):
        code = """
import os, signal, sys, threading, time
import rubato

calls = []

def rule(batch, statistics):
    calls.append(batch)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            os.kill(os.getpid(), signal.SIGINT)
            raise
    return 1

try:
    rubato.train("softmax", trace=64, epochs=100000, rule=rule, out=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted")
while True:
    try:
        rubato.train("softmax", epochs=1, samples=320)
        break
    except rubato.Error:
        time.sleep(0.05)
"""
        code, out, errors = python(code, arguments=[str(self.folder() / "run")])
        self.assertEqual((code, out), (0, "interrupted\n"), errors)


if __name__ == "__main__":
    unittest.main()
