"""AdaScale around optimizers of PyTorch: fairscale's interface and numbers."""

import gc
import json
import subprocess
import sys
import tempfile
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


def _loss(output, target):
    return torch.nn.functional.mse_loss(output, target)


def _small_loss(output, target):
    return 1e-8 * torch.nn.functional.mse_loss(output, target)


class Rule(TestCase):
    def test_gains_do_not_depend_on_the_unit_of_the_loss(self):
        # The gain reaches its bound with some random targets.
        torch.manual_seed(1)
        model, x, y = torch.nn.Linear(6, 1), torch.randn(256, 6), torch.randn(256, 1)
        gains = [rubato.train(model, (x, y), loss=loss, lr=lr, rule="adascale", epochs=2, trace=128, ref_batch=32,
                              momentum=0.0).steps["gain"]
                 for loss, lr in ((_loss, 0.01), (_small_loss, 1e6))]
        self.assertLess(gains[0].max(), 3.9)
        self.assertLess(abs(gains[0] / gains[1] - 1).max(), 1e-4)


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
        with self.assertRaisesRegex(rubato.Error, "is not an optimizer"):
            rubato.AdaScale(3)
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        with self.assertRaisesRegex(rubato.Error, "after 0 of 2"):
            adascale.step()
        backward(self.parameter, [1, 1, 1, 1])
        for call in (adascale.state_dict, lambda: adascale.set_scale(3)):
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
        with self.assertRaisesRegex(rubato.Error, "not a state of AdaScale"):
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

    def test_measures_before_gradients_are_clipped(self):
        gains = []
        for clipped in (False, True):
            adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=4)
            for gradient in ([3, 4, 0, 0], [4, 3, 0, 0], [3, 3, 1, 0], [4, 4, 0, 1]):
                ((self.parameter * torch.tensor(gradient)).sum() / 4).backward()
            if clipped:
                torch.nn.utils.clip_grad_norm_([self.parameter], 1e-3)
            adascale.step()
            gains.append(adascale.gain())
            adascale.zero_grad()
            adascale.unhook()
        self.assertLess(gains[0], 1.2)
        self.assertEqual(*gains)

    def test_measures_behind_the_last_of_several_passes_for_a_minibatch(self):
        other = parameter([5, 6])
        both = torch.optim.SGD([self.parameter, other], lr=0.1)
        adascale = rubato.AdaScale(both, num_gradients_to_accumulate=2, is_scaled_loss=False)
        for gradient, of_other in (([1, 0, 0, 0], [1, 0]), ([0, 1, 0, 0], [0, 2])):
            backward(self.parameter, gradient)
            self.assertGreaterEqual(adascale.gain(), 1)
            backward(other, of_other)
        self.assertAlmostEqual(adascale.gain(), 2, delta=1e-12)
        adascale.step()

    def test_zero_grad_drops_an_accumulation(self):
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        self.step(adascale, [[1, 2, 0, 0], [2, 1, 0, 0]])
        gain, before = adascale.gain(), self.parameter.tolist()
        for passes in (1, 2):
            for value in (7.0, float("inf")):
                for which in range(passes):
                    backward(self.parameter, [value, which, 0, 0])
                if passes == 2 and value == 7:
                    self.assertNotEqual(adascale.gain(), gain)
                adascale.zero_grad()
                self.assertEqual(adascale.gain(), gain)
                self.assertEqual(self.parameter.grad.tolist(), [0, 0, 0, 0])
        self.assertEqual(self.parameter.tolist(), before)
        with self.assertRaisesRegex(rubato.Error, r"step\(\) after 0 of 2"):
            adascale.step()
        self.step(adascale, [[1, 2, 0, 0], [2, 1, 0, 0]])

    def test_a_pass_that_did_not_end(self):
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        backward(self.parameter, [1, 0, 0, 0])

        def fail(gradient):
            raise MemoryError("no memory")

        hook = self.parameter.register_hook(fail)
        with self.assertRaises(MemoryError):
            backward(self.parameter, [0, 1, 0, 0])
        hook.remove()
        self.assertEqual(adascale.gain(), 1)
        with self.assertRaisesRegex(rubato.Error, r"after a last backward pass that did not end; accepted: after zero_grad\(\)"):
            adascale.step()
        adascale.zero_grad()
        self.step(adascale, [[1, 0, 0, 0], [0, 1, 0, 0]])

    def test_small_gradients(self):
        gains = []
        for smallest, unit in ((1e-6, 1), (1e-6, 1e-8), (None, 1), (None, 1e-8)):
            adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2, smallest_variance=smallest)
            self.step(adascale, [[unit, 2 * unit, 0, 0], [2 * unit, unit, 0, 0]])
            gains.append(adascale.gain())
            adascale.unhook()
        self.assertAlmostEqual(gains[1], 2, delta=1e-6)
        for gain in gains[2:]:
            self.assertAlmostEqual(gain, gains[0], delta=1e-12)
        with self.assertRaisesRegex(rubato.Error, "smallest variance -1"):
            rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2, smallest_variance=-1)

    def test_is_not_kept_alive_by_its_hooks(self):
        adascale = rubato.AdaScale(self.sgd, num_gradients_to_accumulate=2)
        gone = weakref.ref(adascale)
        del adascale
        gc.collect()
        self.assertIsNone(gone())
        backward(self.parameter, [1, 1, 1, 1])


# Two workers: their mean gradients by DistributedDataParallel, or by the user's own all-reduce; clipped. Prints the gain.
_WORKER = """
import rubato, sys, torch
rank, store, by_ddp = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "ddp"
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
model = torch.nn.Linear(4, 1, bias=False).double()
trained = torch.nn.parallel.DistributedDataParallel(model) if by_ddp else model
adascale = rubato.AdaScale(torch.optim.SGD(model.parameters(), lr=0.1))
x = torch.tensor([[[1.0, 2, 0, 0]], [[3.0, 0, 0, 1]]], dtype=torch.float64)[rank]
trained(x).sum().backward()
if not by_ddp:
    torch.distributed.all_reduce(model.weight.grad)
    model.weight.grad /= 2
    adascale.gain()
if rank == 0 and by_ddp:
    adascale.gain()  # Nothing waits for the other worker.
torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
adascale.step()
print(adascale.gain())
"""


@unittest.skipUnless(torch.distributed.is_available(), "PyTorch without torch.distributed")
class Workers(TestCase):
    def test_gradients_of_workers_are_clipped_after_they_are_measured(self):
        single = parameter([1, 2, 3, 4])
        adascale = rubato.AdaScale(torch.optim.SGD([single], lr=0.1), num_gradients_to_accumulate=2, is_scaled_loss=False)
        for gradient in ([1, 2, 0, 0], [3, 0, 0, 1]):
            backward(single, gradient)
        adascale.step()
        for how in ("ddp", "own"):
            with tempfile.TemporaryDirectory() as folder:
                workers = [subprocess.Popen([sys.executable, "-c", _WORKER, str(rank), f"{folder}/store", how],
                                            stdout=subprocess.PIPE, text=True) for rank in range(2)]
                for worker in workers:
                    out, _ = worker.communicate(timeout=120)
                    self.assertEqual(worker.returncode, 0)
                    self.assertAlmostEqual(float(out), adascale.gain(), delta=1e-12, msg=how)


if __name__ == "__main__":
    unittest.main()
