"""Updates of 12 steps under a trace, against implementations in numpy and torch."""

import copy
import re
import unittest

import numpy
import rubato
import torch
from support import TestCase, rubato_program

BATCHES = [16, 32, 8, 64, 24, 16, 128, 8, 32, 40, 16, 64]
SAMPLES = sum(BATCHES)
LR, REFERENCE, DECAY = 0.004, 32, 0.05


def problem():
    """A network of doubles, and its samples."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.Tanh(), torch.nn.Linear(20, 5)).double()
    x = torch.randn(SAMPLES, 12, dtype=torch.float64)
    return model, x, (x @ torch.randn(12, 5, dtype=torch.float64)).argmax(1)


def train(model, data, **options):
    return rubato.train(model, data, loss="cross-entropy", trace=BATCHES, epochs=1, minibatch=8, sampler="in-order",
                        lr=LR, ref_batch=REFERENCE, weight_decay=DECAY, threads=2, **options)


def steps_of(model, x, y):
    """Takes the gradients of the 12 steps, and yields the rate and the batch size of each."""
    begin = 0
    for batch in BATCHES:
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x[begin:begin + batch]), y[begin:begin + batch]).backward()
        yield LR * batch / REFERENCE, batch
        begin += batch


def orthogonalised(update):
    x = update.T if update.shape[0] > update.shape[1] else update
    x = x / (numpy.linalg.norm(x) + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if update.shape[0] > update.shape[1] else x


class Muon(TestCase):
    def check(self, optimizer, matrices, nesterov=True, scale=lambda rows, columns: 0.2 * max(rows, columns) ** 0.5):
        model, x, y = problem()
        found = train(copy.deepcopy(model), (x, y), optimizer=optimizer).state_dict
        parameters = dict(model.named_parameters())
        adamw = torch.optim.AdamW([one for name, one in parameters.items() if name not in matrices], weight_decay=DECAY)
        mean = {name: numpy.zeros(parameters[name].shape) for name in matrices}
        for rate, _ in steps_of(model, x, y):
            adamw.param_groups[0]["lr"] = rate
            adamw.step()
            for name in matrices:
                gradient, weights = parameters[name].grad.numpy(), parameters[name].detach().numpy()
                mean[name] = 0.95 * mean[name] + 0.05 * gradient
                update = 0.95 * mean[name] + 0.05 * gradient if nesterov else mean[name]
                weights *= 1 - rate * DECAY
                weights -= rate * scale(*weights.shape) * orthogonalised(update)
        for name, wanted in parameters.items():
            self.assertTrue(torch.allclose(found[name], wanted, rtol=1e-9, atol=1e-12), name)

    def test_of_all_matrices(self):
        self.check("muon", ["0.weight", "2.weight"])

    def test_of_jordan_without_the_last_layer(self):
        self.check("muon:adamw=2.*,nesterov=false,scale=jordan", ["0.weight"], nesterov=False,
                   scale=lambda rows, columns: max(1, rows / columns) ** 0.5)

    def test_refuses_a_pattern_that_matches_nothing(self):
        code, _, errors = rubato_program("train", "--model=softmax", "--optimizer=muon:adamw=*embed*")
        self.assertEqual(code, 2)
        self.assertIn("--optimizer: no parameter", errors)


class RatesOfParameters(TestCase):
    FACTORS = {"0.weight": 0, "2.*": 10}

    def check(self, make, **options):
        model, x, y = problem()
        start = copy.deepcopy(model.state_dict())
        found = train(model, (x, y), lr_for=self.FACTORS, **options)
        layers = [([model[0].weight], 0), ([model[0].bias], 1), ([*model[2].parameters()], 10)]
        optimizer = make([{"params": parameters} for parameters, _ in layers])
        for rate, _ in steps_of(model, x, y):
            for group, (_, factor) in zip(optimizer.param_groups, layers):
                group["lr"] = rate * factor
            optimizer.step()
        for name, wanted in model.named_parameters():
            self.assertTrue(torch.allclose(found.state_dict[name], wanted, rtol=1e-9, atol=1e-12), name)
            self.assertEqual(torch.equal(found.state_dict[name], start[name]), name == "0.weight", name)
        self.assertEqual(list(found.steps["lr"]), [LR * batch / REFERENCE for batch in BATCHES])

    def test_are_those_of_groups_of_sgd(self):
        self.check(lambda groups: torch.optim.SGD(groups, lr=1, momentum=0.9, weight_decay=DECAY), momentum=0.9)

    def test_are_those_of_groups_of_adamw(self):
        self.check(lambda groups: torch.optim.AdamW(groups, weight_decay=DECAY), optimizer="adamw")

    def test_are_the_same_as_text_on_several_threads_and_in_a_fork(self):
        folder = self.folder() / "run"
        options = {"model": "mlp:hidden=16", "trace": 64, "samples": 1280, "optimizer": "adamw"}
        found = rubato.train(**options, lr_for={"*.bias": 3, "linear1.*": 0.5}, threads=1, out=folder)
        again = rubato.train(**options, lr_for="*.bias=3,linear1.*=0.5", threads=3, cores=3)
        self.assertEqual(found.sha256, again.sha256)
        self.assertNotEqual(found.sha256, rubato.train(**options).sha256)
        self.assertEqual(rubato.train(**options, lr_for={"*": 1}).sha256, rubato.train(**options).sha256)
        self.assertEqual(rubato.train(from_run=folder, from_step=9).sha256, found.sha256)
        self.assertNotEqual(rubato.train(from_run=folder, from_step=9, lr_for={"*": 0.5}).sha256, found.sha256)

    def test_with_wrong_values_are_refused(self):
        for factors, message in (({"0.*": -1}, "--lr-for: '-1' is out of range"), ({"3.*": 1}, "--lr-for: no parameter matches '3.*'"),
                                 ({"0.*": float("inf")}, "--lr-for: 'inf' is out of range")):
            model, x, y = problem()
            with self.assertRaisesRegex(rubato.Error, re.escape(message)):
                train(model, (x, y), lr_for=factors)
        with self.assertRaisesRegex(TypeError, re.escape("lr_for['0.*']: it is of type NoneType")):
            rubato.train("softmax", lr_for={"0.*": None})
        with self.assertRaisesRegex(TypeError, "momentum: it is of type dict"):
            rubato.train("softmax", momentum={"*": 0.5})


class Averages(TestCase):
    def test_have_a_half_life_in_samples(self):
        half_life = 100
        model, x, y = problem()
        options = {"optimizer": "sgd", "momentum": 0.9, "validation": (x[:64], y[:64])}
        without = train(copy.deepcopy(model), (x, y), **options)
        result = train(copy.deepcopy(model), (x, y), ema=half_life, **options)
        self.assertEqual(without.other_weights, {})
        self.assertEqual(result.sha256, without.sha256)
        average = {name: value.detach().numpy().copy() for name, value in model.named_parameters()}
        sgd = torch.optim.SGD(model.parameters(), lr=1, momentum=0.9, weight_decay=DECAY)
        for rate, batch in steps_of(model, x, y):
            sgd.param_groups[0]["lr"] = rate
            sgd.step()
            rho = 2 ** (-batch / half_life)
            for name, value in model.named_parameters():
                average[name] = rho * average[name] + (1 - rho) * value.detach().numpy()
        for name, wanted in average.items():
            averaged = result.other_weights["ema"][name].numpy()
            self.assertTrue(numpy.allclose(averaged, wanted, rtol=1e-9, atol=1e-12), name)
            self.assertFalse(numpy.allclose(result.state_dict[name].numpy(), wanted, rtol=1e-3), name)

        # The tests are those of the averages.
        model.load_state_dict(result.other_weights["ema"])
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(model(x[:64]), y[:64]).item()
        self.assertAlmostEqual(result.epochs["ema_test_loss"][-1], loss, delta=1e-9)
        self.assertEqual(result.summary["final_ema_test_loss"], result.epochs["ema_test_loss"][-1])
        self.assertNotIn("final_ema_test_loss", without.summary)
        self.assertEqual(without.epochs["test_loss"][-1], result.epochs["test_loss"][-1])

    def test_are_kept_in_the_run_folder(self):
        folder = self.folder() / "run"
        result = rubato.train(model="mlp:hidden=16", trace=[64, 256], on_trace_end="cycle", epochs=2, samples=12000, lr=0.02,
                              ema=2000, out=folder, watch="ema-test-loss", keep_best=True)
        self.assertTrue((folder / "ema.safetensors").exists())
        code, out, errors = rubato_program("eval", str(folder), f"--weights={folder / 'ema.safetensors'}")
        self.assertEqual(code, 0, errors)
        self.assertIn(f"{100 * result.epochs['ema_test_accuracy'][-1]:.2f} %", out)
        self.assertEqual(list(result.other_weights), ["best", "ema"])
        for name, value in result.other_weights["best"].items():
            self.assertTrue(torch.equal(value, result.other_weights["ema"][name]), name)


if __name__ == "__main__":
    unittest.main()
