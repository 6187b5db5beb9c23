"""AdaScale around optimizers of PyTorch: fairscale's interface and numbers."""

import gc
import json
import unittest
import weakref

import rubato
import torch
from support import SHARED, TestCase


def parameter(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def backward(tensor, gradient):
    (tensor * torch.tensor(gradient, dtype=torch.float64)).sum().backward()


class Reference(TestCase):
    def test_every_step_of_every_run(self):
        file = SHARED / "reference" / "adascale.json"
        if not file.exists():
            self.skipTest(f"no {file} here")
        for run in json.loads(file.read_text()):
            with self.subTest(run["name"]):
                self.check(run)

    def check(self, run):
        parameters = [parameter(initial) for initial in run["initial_params"]]
        sgd = torch.optim.SGD([{"params": [one]} for one in parameters], lr=run["lr"], momentum=run["momentum"])
        adascale = rubato.AdaScale(sgd, scale=run["scale_argument"], smoothing=run["smoothing_argument"],
                                   num_gradients_to_accumulate=run["steps"][0]["accumulate"],
                                   debias_ewma=run["debias_ewma"], is_scaled_loss=run["is_scaled_loss"])
        for step in run["steps"]:
            if step["set_scale"] is not None:
                adascale.set_scale(step["set_scale"])
                adascale.set_num_gradients_to_accumulate(step["accumulate"])
            adascale.zero_grad()
            for micro in step["micro_gradients"]:
                loss = sum((one * torch.tensor(gradient, dtype=torch.float64)).sum()
                           for one, gradient in zip(parameters, micro))
                (loss / step["accumulate"] if run["is_scaled_loss"] else loss).backward()
            adascale.step()
            self.assertAlmostEqual(adascale.gain() / step["gain"], 1, delta=1e-9)
            self.assertEqual(adascale.scale, step["scale"])
            self.assertAlmostEqual(adascale.smoothing, step["smoothing"], delta=1e-12)
            for group, one in enumerate(parameters):
                self.assertAlmostEqual(adascale.gain(group) / step["gain_per_group"][group], 1, delta=1e-9)
                wanted = torch.tensor(step["params_after"][group], dtype=torch.float64)
                self.assertTrue(torch.allclose(one.detach(), wanted, rtol=1e-9, atol=1e-12))
                self.assertEqual(sgd.param_groups[group]["lr"], step["lr_after_step"][group])


class Loop(TestCase):
    def setUp(self):
        self.parameter = parameter([1, 2, 3, 4])
        self.sgd = torch.optim.SGD([self.parameter], lr=0.1)

    def step(self, adascale, gradients):
        adascale.zero_grad()
        for gradient in gradients:
            backward(self.parameter, gradient)
        adascale.step()

    def test_published_gains(self):
        orthogonal = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
        for scale in (4, 2, 4 / 3):
            adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=4, scale=scale, is_scaled_loss=False)
            self.assertEqual(adascale.gain(), 1)
            self.step(adascale, orthogonal)
            self.assertAlmostEqual(adascale.gain(), scale, delta=1e-12)
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2, is_scaled_loss=False)
        self.step(adascale, [[1, 1, 0, 0], [1, 1, 0, 0]])
        self.assertAlmostEqual(adascale.gain(), 1.0000002499999376, delta=1e-14)

    def test_rates_are_those_of_the_step_alone(self):
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        before = self.parameter.detach().clone()
        self.step(adascale, [[0.5, 0, 0, 0], [0, 0.5, 0, 0]])
        self.assertEqual(self.sgd.param_groups[0]["lr"], 0.1)
        moved = before - self.parameter.detach()
        self.assertAlmostEqual(moved[0].item(), 0.1 * 2 * 0.5, delta=1e-12)

    def test_state_goes_on(self):
        runs = []
        for resumed in (False, True):
            self.setUp()
            adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
            for step in range(6):
                if resumed and step == 3:
                    state = adascale.state_dict()
                    adascale.unhook()
                    adascale = rubato.AdaScale(torch.optim.SGD([self.parameter], lr=7.0), num_gradients_to_accumulate=3)
                    adascale.load_state_dict(state)
                self.step(adascale, [[1, step, 0, 0], [0, 1, 1, step]])
            runs.append((adascale.gain(), self.parameter.tolist()))
        self.assertEqual(*runs)

    def test_schedulers_and_closures(self):
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        scheduler = torch.optim.lr_scheduler.StepLR(adascale, 1, gamma=0.5)

        def closure():
            adascale.zero_grad()
            backward(self.parameter, [1, 0, 0, 0])
            backward(self.parameter, [0, 1, 0, 0])
            return 3.5

        self.assertEqual(adascale.step(closure), 3.5)
        scheduler.step()
        self.assertEqual(self.sgd.param_groups[0]["lr"], 0.05)
        adascale.add_param_group({"params": [parameter([1.0])], "lr": 0.3})
        self.assertEqual(len(adascale.param_groups), 2)

    def test_misuse(self):
        for options in ({"num_gradients_to_accumulate": 1}, {"num_gradients_to_accumulate": 0}, {"scale": 0, "world_size": 2},
                        {"world_size": 2}, {"num_gradients_to_accumulate": 2, "smoothing": 1},
                        {"num_gradients_to_accumulate": 2, "scale": float("nan")}):
            with self.assertRaises(rubato.Error, msg=options):
                rubato.AdaScale(self.sgd, **options)
        with self.assertRaisesRegex(rubato.Error, "no optimizer"):
            rubato.AdaScale(3)
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        with self.assertRaisesRegex(rubato.Error, "after 0 of 2"):
            adascale.step()
        backward(self.parameter, [1, 1, 1, 1])
        for call in (adascale.zero_grad, adascale.state_dict, lambda: adascale.set_scale(3)):
            with self.assertRaisesRegex(rubato.Error, "in the middle of an accumulation, after 1 of 2"):
                call()
        backward(self.parameter, [1, 1, 1, 1])
        with self.assertRaisesRegex(rubato.Error, "more than 2 backward passes"):
            backward(self.parameter, [1, 1, 1, 1])
        with self.assertRaisesRegex(rubato.Error, "parameter group 1"):
            adascale.gain(1)
        with self.assertRaisesRegex(rubato.Error, "parameter group -1"):
            adascale.gain(-1)
        adascale.unhook()
        with self.assertRaisesRegex(rubato.Error, "after unhook"):
            adascale.step()
        with self.assertRaisesRegex(rubato.Error, "no state"):
            adascale.load_state_dict({})

    def test_world_sizes_and_scales_are_not_guessed(self):
        for world_size in (0, -1):
            with self.assertRaisesRegex(rubato.Error, f"world size {world_size} and 4 gradients"):
                rubato.AdaScale(self.sgd, world_size=world_size, num_gradients_to_accumulate=4)
        with self.assertRaisesRegex(rubato.Error, "at least two gradients"):
            rubato.AdaScale(self.sgd)
        with self.assertRaisesRegex(rubato.Error, "smoothing -1"):
            rubato.AdaScale(self.sgd, num_gradients_to_accumulate=4, smoothing=-1)
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=4)
        with self.assertRaisesRegex(rubato.Error, "at least two gradients"):
            adascale.set_num_gradients_to_accumulate(1)
        with self.assertRaisesRegex(rubato.Error, "scale inf"):
            adascale.set_scale(float("inf"))

    def test_a_wrong_state_changes_nothing(self):
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        self.step(adascale, [[1, 0, 0, 0], [0, 1, 0, 0]])
        state, gain = adascale.state_dict(), adascale.gain()
        state["optimizer"]["param_groups"][0]["lr"] = 7.0
        for name, wrong in (("averages", [1.0, 0.0, 3.0]), ("smoothing", 2.0), ("scale", -1.0)):
            with self.assertRaises(rubato.Error):
                adascale.load_state_dict({**state, "adascale": {**state["adascale"], name: wrong}})
            self.assertEqual((self.sgd.param_groups[0]["lr"], adascale.gain(), adascale.smoothing), (0.1, gain, 0.998))
        adascale.load_state_dict(state)
        self.assertEqual(self.sgd.param_groups[0]["lr"], 7.0)

    def test_is_not_kept_alive_by_its_hooks(self):
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        gone = weakref.ref(adascale)
        del adascale
        gc.collect()
        self.assertIsNone(gone())
        backward(self.parameter, [1, 1, 1, 1])


if __name__ == "__main__":
    unittest.main()
