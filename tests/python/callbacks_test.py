"""Callbacks, Ctrl-C, threads, and the end of the interpreter."""

import gc
import json
import os
import signal
import threading
import time
import unittest
import warnings

import rubato
import torch
from support import TestCase, python

LONG = {"model": "softmax", "trace": 32, "epochs": 100000}


def wait_for_a_step(folder):
    """Until the training into this folder has come to a step."""
    metrics = folder / "metrics.jsonl"
    while not metrics.exists() or metrics.stat().st_size == 0:
        time.sleep(0.01)


class Callbacks(TestCase):
    def test_hear_of_every_step_and_epoch_on_the_calling_thread(self):
        steps, epochs, threads = [], [], set()

        def on_step(step):
            threads.add(threading.get_ident())
            steps.append(step)

        result = rubato.train("softmax", epochs=2, samples=20000, on_step=on_step, on_epoch=epochs.append)
        self.assertEqual([step["loss"] for step in steps], result.steps["loss"].tolist())
        self.assertEqual([epoch["test_accuracy"] for epoch in epochs], result.epochs["test_accuracy"].tolist())
        self.assertIsNone(steps[0]["noise_scale"])
        self.assertIs(steps[0]["applied"], True)
        self.assertEqual(threads, {threading.get_ident()})

    def test_false_stops(self):
        result = rubato.train(on_step=lambda step: step["step"] < 6, **LONG)
        self.assertEqual(result.steps.rows, 7)
        self.assertEqual(result.stopped, "on_step returned False")
        # An epoch that is cut short is evaluated as any other.
        self.assertEqual(result.epochs["whole"].tolist(), [False])
        result = rubato.train(on_epoch=lambda epoch: epoch["epoch"] < 1, **LONG)
        self.assertEqual(result.epochs.rows, 2)
        # Only False does.
        self.assertEqual(rubato.train("softmax", trace=32, samples=320, on_step=lambda step: 0).steps.rows, 10)

    def test_what_was_stopped_goes_on_as_if_it_had_not_been(self):
        options = {"model": "softmax", "trace": 512, "epochs": 3}
        wanted = self.folder() / "run"
        whole = rubato.train(out=wanted, **options)

        def lines(folder):
            found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
            return [{name: value for name, value in line.items() if name != "seconds"} for line in found]

        last = whole.steps.rows - 1
        for stops in ({"on_step": lambda step: step["step"] != 30}, {"on_step": lambda step: step["step"] != 45},
                      {"on_epoch": lambda epoch: epoch["epoch"] != 1}, {"on_step": lambda step: step["step"] != last},
                      {"on_step": lambda step: step["step"] != 3, "checkpoint_every": "never"},
                      {"on_step": lambda step: step["step"] != 26, "checkpoint_every": "2steps"}):
            folder = self.folder() / "run"
            first = rubato.train(out=folder, **stops, **options)
            self.assertIn("returned False", first.stopped)
            self.assertEqual(rubato.train(resume=folder).sha256, whole.sha256)
            self.assertEqual(lines(folder), lines(wanted))

    def test_what_was_stopped_by_itself_has_ended(self):
        folder = self.folder() / "run"
        first = rubato.train("softmax", trace=512, samples=5120, on_step=lambda step: step["step"] < 9, out=folder)
        self.assertEqual(first.stopped, "5120 samples reached")
        with self.assertWarnsRegex(RuntimeWarning, "^nothing was left to train: 5120 samples reached$") as caught:
            self.assertEqual(rubato.train(resume=folder).steps.rows, 0)
        self.assertEqual(caught.filename, __file__)

    def test_exceptions_leave_a_checkpoint(self):
        folder = self.folder() / "run"

        class Mine(Exception):
            pass

        def on_step(step):
            if step["step"] == 4:
                raise Mine("here")

        lines = []
        with self.assertWarnsRegex(RuntimeWarning, "to go on: rubato.train"):
            try:
                rubato.train(on_step=on_step, out=folder, **LONG)
            except Mine as error:
                traceback = error.__traceback__
                while traceback:
                    lines.append(traceback.tb_frame.f_code.co_name)
                    traceback = traceback.tb_next
        # Where it was raised.
        self.assertEqual(lines[-1], "on_step")
        whole = rubato.train("softmax", trace=32, epochs=100000, samples=640).sha256
        going_on = rubato.train(resume=folder, on_step=lambda step: step["step"] < 19)
        self.assertEqual(going_on.steps["step"].tolist(), list(range(5, 20)))
        self.assertEqual(going_on.sha256, whole)

    def test_exceptions_have_the_result(self):
        class Mine(Exception):
            result = None

        def on_step(step):
            if step["step"] == 4:
                raise Mine

        with self.assertRaises(Mine) as caught:
            rubato.train("mlp:hidden=8,activation=tanh", trace=32, epochs=100000, on_step=on_step)
        result = caught.exception.result
        self.assertEqual(result.steps["step"].tolist(), [0, 1, 2, 3, 4])
        self.assertEqual(result.summary, {})
        self.assertIsNone(result.sha256)
        wanted = rubato.train("mlp:hidden=8,activation=tanh", trace=32, samples=160)
        for name, tensor in wanted.state_dict.items():
            self.assertTrue(torch.equal(result.state_dict[name], tensor), name)
        images = torch.rand(2, 1, 28, 28)
        self.assertTrue(torch.equal(result.module(images), wanted.module(images)))

    def test_what_fails_as_it_ends_is_a_warning(self):
        folder = self.folder() / "run"

        def on_step(step):
            if step["step"] == 4:
                (folder / "metrics.jsonl").unlink()
                raise KeyError("mine")

        with self.assertWarnsRegex(RuntimeWarning, "(?s)while the training was ending: .*metrics.jsonl.*the weights after 5 steps"):
            with self.assertRaisesRegex(KeyError, "mine"):
                rubato.train(on_step=on_step, out=folder, **LONG)

    def test_training_in_a_callback_is_refused(self):
        with self.assertRaisesRegex(rubato.Error, "another training is under way"):
            rubato.train(on_step=lambda step: rubato.train("softmax"), **LONG)
        # And the next is not.
        rubato.train("softmax", epochs=1, samples=320, trace=32)

    def test_only_functions(self):
        with self.assertRaises(TypeError):
            rubato.train("softmax", on_step=3)


class Interrupted(TestCase):
    def test_control_c(self):
        folder = self.folder() / "run"

        def on_step(step):
            if step["step"] == 4:
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertWarnsRegex(RuntimeWarning, "the checkpoint is"), self.assertRaises(KeyboardInterrupt) as caught:
            rubato.train(out=folder, on_step=on_step, **LONG)
        self.assertGreaterEqual(caught.exception.result.steps.rows, 5)
        result = rubato.train(resume=folder, on_step=lambda step: False)
        self.assertEqual(result.steps["step"].tolist(), [caught.exception.result.steps.rows])

    def test_goes_on_from_the_result_without_a_folder(self):
        class Ended(Exception):
            pass

        class Counting:
            def __init__(self):
                self.calls = 0.0

            def __call__(self, batch, statistics):
                self.calls += 1
                return self.calls

            def state(self):
                return [self.calls]

            def load_state(self, numbers):
                self.calls, = numbers

        def ended_in(last):
            def on_step(step):
                if step["step"] == last:
                    raise Ended
            return on_step

        data = torch.rand(640, 4), torch.arange(640) % 3
        options = {"trace": [64, 32], "on_trace_end": "cycle", "lr": 1e-5, "momentum": 0.9, "epochs": 2}
        model = torch.nn.Linear(4, 3)
        options["weights"] = {name: tensor + 1 for name, tensor in model.state_dict().items()}
        whole = rubato.train(model, data, rule=Counting(), **options)
        with self.assertRaises(Ended) as first:
            rubato.train(model, data, rule=Counting(), on_step=ended_in(3), **options)
        with self.assertRaises(Ended) as second:
            rubato.train(model, data, rule=Counting(), resume=first.exception.result, on_step=ended_in(17))
        # The second result needs the weights of the first, which a notebook has forgotten by then.
        so_far = second.exception.result
        del first
        gc.collect()
        result = rubato.train(model, data, rule=Counting(), resume=so_far)
        self.assertEqual(result.sha256, whole.sha256)
        self.assertEqual(result.steps["step"].tolist(), whole.steps["step"][18:].tolist())
        self.assertEqual(result.steps["lr"].tolist(), whole.steps["lr"][18:].tolist())
        for error, arguments in (("--lr", {"lr": 1}), ("--out", {"out": self.folder() / "run"}), ("--config", {"config": "x"})):
            with self.assertRaisesRegex(rubato.Error, error):
                rubato.train(model, data, rule=Counting(), resume=so_far, **arguments)
        with self.assertRaisesRegex(rubato.Error, "--rule own"):
            rubato.train(model, data, resume=so_far)
        with self.assertRaisesRegex(rubato.Error, "resume: the training has ended"):
            rubato.train(resume=whole)

    def test_the_way_on_names_what_has_no_name(self):
        def on_step(step):
            raise KeyboardInterrupt

        data = torch.rand(64, 4), torch.arange(64) % 3

        def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(output, target)

        for call, arguments in (("model, data, validation=validation, loss=loss, ",
                                 {"model": torch.nn.Linear(4, 3), "data": data, "validation": data, "loss": loss}),
                                ("model, data, ", {"model": torch.nn.Linear(4, 3), "data": data, "validation": 0.5}),
                                ("data=data, ", {"model": "mlp", "data": data}), ("", {"model": "softmax"})):
            folder = self.folder() / "run"
            with self.assertWarns(RuntimeWarning) as warned, self.assertRaises(KeyboardInterrupt):
                rubato.train(out=folder, on_step=on_step, trace=32, epochs=2, **arguments)
            self.assertIn(f"to go on: rubato.train({call}resume='{folder}')", str(warned.warning))
            # It does as it says.
            model, validation = arguments["model"], arguments.get("validation")
            eval(f"rubato.train({call}resume=folder, on_step=lambda step: False)",
                 {"rubato": rubato, "model": model, "data": data, "validation": validation, "loss": loss, "folder": folder})

    def test_control_c_between_callbacks(self):
        folder = self.folder() / "run"

        def interrupt():
            wait_for_a_step(folder)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        # Nothing but a look at every moment notices the signal.
        with self.assertWarnsRegex(RuntimeWarning, "the checkpoint is"), self.assertRaises(KeyboardInterrupt):
            rubato.train(out=folder, **LONG)
        thread.join()

    def test_a_second_control_c_ends_the_call_at_once(self):
        code = """
import os, signal, sys, threading, time
import torch, rubato

class Slow(torch.nn.Module):
    # Takes about four seconds on every machine.
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)
        torch.set_num_threads(1)
        y, products, start = torch.eye(500), 0, time.monotonic()
        while time.monotonic() - start < 0.4:
            y, products = y @ y, products + 1
        self.products = 10 * products

    def forward(self, x):
        y = torch.eye(500)
        for i in range(self.products):
            y = y @ y
        return self.linear(x) + 0.0 * y.sum()

begun, pressed = threading.Event(), []

def press():
    # Twice in the second step.
    begun.wait()
    for i in range(2):
        time.sleep(0.2)
        pressed.append(i)
        os.kill(os.getpid(), signal.SIGINT)

data = torch.rand(64, 2), torch.arange(64) % 3
threading.Thread(target=press, daemon=True).start()
try:
    rubato.train(Slow(), data, trace=64, minibatch=64, epochs=9, out=sys.argv[1], on_step=lambda step: begun.set())
except KeyboardInterrupt as error:
    print("interrupted", hasattr(error, "result"), len(pressed))
# The step is not over: the call has ended before it.
try:
    rubato.train("softmax", epochs=1, samples=320)
except rubato.Error as error:
    print(error)
while True:
    try:
        rubato.train("softmax", epochs=1, samples=320)
        break
    except rubato.Error:
        time.sleep(0.05)
folder = sys.argv[1] + "/checkpoints"
print("later", os.listdir(folder) if os.path.isdir(folder) else [])
"""
        code, out, errors = python(code, arguments=[str(self.folder() / "run")])
        self.assertEqual(code, 0, errors)
        self.assertEqual(out.count("\n"), 3, out)
        first, refused, last = out.splitlines()
        self.assertEqual(first, "interrupted False 2", out)
        self.assertIn("another training is under way", refused)
        # The step has ended by itself, without a checkpoint.
        self.assertEqual(last, "later []", out)

    def test_other_handlers_of_signals(self):
        class Ended(Exception):
            pass

        def handler(number, frame):
            raise Ended

        before = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        folder = self.folder() / "run"

        def interrupt():
            wait_for_a_step(folder)
            os.kill(os.getpid(), signal.SIGUSR1)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertWarnsRegex(RuntimeWarning, "the checkpoint is"), self.assertRaises(Ended):
            rubato.train(out=folder, **LONG)
        thread.join()


class Threads(TestCase):
    def test_the_gil_is_free(self):
        turns, seen = 0, []
        done = threading.Event()

        def take_turns():
            nonlocal turns
            while not done.is_set():
                turns += 1
                time.sleep(0.001)

        thread = threading.Thread(target=take_turns)
        thread.start()
        # Steps of half a second: were the GIL not free, no other thread would come to more than a turn or two between
        # one callback and the next.
        rubato.train("mnist-cnn", trace=4096, minibatch=64, ref_batch=4096, samples=12288, epochs=1, threads=1,
                     on_step=lambda step: seen.append(turns))
        done.set()
        thread.join()
        self.assertGreater(max(after - before for before, after in zip(seen, seen[1:])), 5)

    def test_one_training_at_a_time(self):
        begun, done, results = threading.Event(), threading.Event(), []

        def first():
            def on_step(step):
                begun.set()
                return not done.is_set()

            results.append(rubato.train(on_step=on_step, **LONG))

        thread = threading.Thread(target=first)
        thread.start()
        begun.wait()
        with self.assertRaisesRegex(rubato.Error, "another training is under way in this process"):
            rubato.train("softmax")
        # What does not train does not mind.
        self.assertEqual(len(rubato.plan(64)), 1)
        done.set()
        thread.join()
        self.assertEqual(results[0].stopped, "on_step returned False")


class Ends(TestCase):
    def ends_well(self, code, words="", returned=0):
        found = python(f"import rubato, threading, os, time\n{code}")
        self.assertEqual(found[0], returned, found)
        self.assertIn(words, found[1] + found[2])

    def test_a_training_of_a_daemon_ends_with_the_interpreter(self):
        self.ends_well("""
begun = threading.Event()
def train():
    try:
        rubato.train("softmax", trace=32, epochs=100000, on_step=lambda step: begun.set())
    except rubato.Error as error:
        print(error)
threading.Thread(target=train, daemon=True).start()
begun.wait()
""")

    def test_sys_exit_in_a_callback(self):
        self.ends_well("""
import sys
rubato.train("softmax", trace=32, epochs=100000, on_step=lambda step: sys.exit(5))
""", returned=5)

    def test_forked_processes(self):
        self.ends_well("""
rubato.train("softmax", trace=32, samples=320)
child = os.fork()
if child == 0:
    try:
        rubato.train("softmax")
    except rubato.Error as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
""", "spawn")

    def test_processes_forked_while_another_thread_trains(self):
        self.ends_well("""
begun, done = threading.Event(), threading.Event()
def on_step(step):
    begun.set()
    return not done.is_set()
thread = threading.Thread(target=rubato.train, args=("softmax",), kwargs=dict(trace=32, epochs=100000, on_step=on_step))
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    # What it has inherited of the other thread's training ends nothing and holds nothing up.
    raise SystemExit(3)
until = time.monotonic() + 30
while time.monotonic() < until:
    found, status = os.waitpid(child, os.WNOHANG)
    if found:
        break
    time.sleep(0.05)
else:
    os.kill(child, 9)
done.set()
thread.join()
print("child", os.waitstatus_to_exitcode(status) if found else "hangs")
""", "child 3")

    def test_data_that_go_before_training_ends(self):
        self.ends_well("""
import numpy, torch, gc
def data():
    inputs = numpy.random.rand(256, 8).astype("f4")
    return inputs, numpy.arange(256) % 3
def on_step(step):
    gc.collect()
rubato.train(torch.nn.Linear(8, 3), data(), trace=32, epochs=3, on_step=on_step)
print("well")
""", "well")


if __name__ == "__main__":
    warnings.simplefilter("always")
    unittest.main()
