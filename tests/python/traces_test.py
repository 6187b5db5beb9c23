"""Traces, plans and simulations."""

import json
import os
import signal
import threading
import time
import unittest
from unittest import mock

import numpy
import rubato
from support import BINARY, TestCase, rubato_program


class Traces(TestCase):
    def test_lists_and_files(self):
        file = self.folder() / "trace.csv"
        trace = rubato.Trace([(256, 8), 96, (32, 1)])
        trace.to_csv(file)
        read = rubato.Trace.read(file)
        self.assertEqual(list(read), [(256, 8), (96, None), (32, 1)])
        self.assertEqual(read.batch_sizes.tolist(), [256, 96, 32])
        self.assertEqual(read.cores.tolist(), [8, 0, 1])
        self.assertEqual((len(read), read.end, read.source), (3, "error", str(file)))
        self.assertEqual(list(rubato.Trace(numpy.array([[64, 2], [32, 1]]))), [(64, 2), (32, 1)])
        self.assertEqual(list(rubato.Trace(numpy.array([64, 32]))), [(64, None), (32, None)])
        self.assertEqual(len(rubato.Trace.read("elastic")), len(rubato.Trace.read("elastic", end="hold")))
        of_hosts = rubato.Trace([(256, (4, 2, 2)), (96, 3)])
        self.assertEqual(of_hosts.to_csv(), "step,batchsize,cores\n0,256,4+2+2\n1,96,3\n")
        self.assertEqual(list(rubato.Trace(list(of_hosts))), [(256, [4, 2, 2]), (96, 3)])
        self.assertEqual(of_hosts.cores.tolist(), [8, 3])
        for steps in ([], [0], [64.5], [True], ["x"], [(1, 2, 3)], [2**70], [(64, 0)], [(64, ())],
                      [(64, (2, -1))], [(64, (2, 0.5))]):
            with self.assertRaises((rubato.Error, ValueError), msg=steps):
                rubato.Trace(steps)

    def test_availability(self):
        made = rubato.Trace.generate("spot:most=16,seed=3")
        self.assertEqual(made.to_csv(), rubato_program("trace", "generate", "spot:most=16,seed=3")[1])
        file = self.folder() / "devices.csv"
        made.to_csv(file)
        read = rubato.Trace.import_file(file, format="samples")
        self.assertEqual(read.devices.tolist(), made.devices.tolist())
        self.assertEqual(read.summary["most"], made.devices.max())
        steps = read.to_trace("weak:quantum=2", minibatch=16)
        self.assertEqual(steps.to_csv(), rubato_program("trace", "convert", str(file), "--minibatch=16",
                                                        "--availability=weak:quantum=2")[1])
        zones = self.folder() / "zones.csv"
        zones.write_text("time,us-a,us-b\n0,1,2\n60,4,8\n")
        self.assertEqual(rubato.Trace.import_file(f"{zones},zone=us").devices.tolist(), [3, 12])
        self.assertEqual(rubato.Trace.read(f"{zones},column=us-b").devices.tolist(), [2, 8])
        records = self.folder() / "records.csv"
        records.write_text('Time,GPUs\n0,4\n60,2\n')
        self.assertEqual(rubato.Trace.import_file(records).devices.tolist(), [4, 2])
        self.assertIn("spot", rubato.Trace.generators())
        own = rubato.Availability([0, 600], [4, 2], 3600, end="cycle")
        self.assertEqual((own.seconds.tolist(), own.devices.tolist(), own.length), ([0, 600], [4, 2], 3600))
        with self.assertRaises(rubato.Error):
            rubato.Availability([5], [4], 10)
        with self.assertRaisesRegex(rubato.Error, "2 times and 1 numbers of devices"):
            rubato.Availability([0, 5], [4], 10)

    def test_plots(self):
        # What is drawn, on axes that are not matplotlib's.
        axes = mock.Mock()
        self.assertIs(rubato.Trace([64, 32]).plot(axes), axes)
        self.assertEqual(axes.step.call_args.args[1].tolist(), [64, 32])
        axes = mock.Mock()
        rubato.Availability([0, 3600], [4, 2], 7200).plot(axes)
        hours, devices = axes.step.call_args.args
        self.assertEqual((hours.tolist(), devices.tolist()), ([0, 1, 2], [4, 2, 2]))

    def test_plots_of_matplotlib(self):
        try:
            import matplotlib
        except ImportError:
            with self.assertRaises(ImportError):
                rubato.Trace([64]).plot()
            self.skipTest("no matplotlib here (Debian: python3-matplotlib)")
        matplotlib.use("Agg")
        axes = rubato.Trace([64, 32]).plot()
        self.assertEqual((axes.get_xlabel(), axes.get_title()), ("step", "a list of 2 steps"))
        self.assertEqual(axes.lines[0].get_ydata().tolist(), [64, 32])
        axes = rubato.Availability([0, 3600], [4, 2], 7200).plot()
        self.assertEqual(axes.lines[0].get_xdata().tolist(), [0, 1, 2])


class Plans(TestCase):
    def test_is_that_of_the_command_line(self):
        options = ("--dataset-size=2000", "--minibatch=16", "--cores=5", "--assignment=strided", "--epochs=2")
        theirs = json.loads(rubato_program("plan", "--json", *options)[1])["epochs"]
        ours = rubato.plan(dataset_size=2000, minibatch=16, cores=5, assignment="strided", epochs=2)
        self.assertEqual(len(ours), len(theirs))
        for own, their in zip(ours, theirs):
            self.assertEqual(own.index, their["epoch"])
            self.assertEqual(own.steps["batch"].tolist(), their["batch_sizes"])
            for row in range(own.steps.rows):
                for core, minibatches in enumerate(own.shares(row)):
                    self.assertEqual(minibatches, their["cores"][core]["assignments"][row])

    def test_of_lists(self):
        epochs = rubato.plan([64, 128, 64, 128], dataset_size=200)
        self.assertEqual([epoch.steps["batch"].tolist() for epoch in epochs], [[64, 128], [64, 128]])
        with self.assertRaisesRegex(rubato.Error, "minibatch"):
            rubato.plan([33])
        with self.assertRaisesRegex(TypeError, "plan.*lr"):
            rubato.plan(lr=3)
        for epochs in (0, -1, 1_000_001):
            with self.assertRaisesRegex(rubato.Error, "accepted are whole numbers from 1 to 1000000"):
                rubato.plan(64, epochs=epochs)

    def test_ends_of_traces(self):
        steps = [64, 128]
        for trace in (steps, rubato.Trace(steps), rubato.Trace(steps, end="stop")):
            epochs = rubato.plan(trace, dataset_size=192, epochs=3, on_trace_end="cycle")
            self.assertEqual([epoch.steps["batch"].tolist() for epoch in epochs], [steps] * 3)
        epochs = rubato.plan(rubato.Trace(steps, end="hold"), dataset_size=192, epochs=2)
        self.assertEqual(epochs[1].steps["batch"].tolist(), [128])
        with self.assertRaises(rubato.Error):
            rubato.plan(rubato.Trace(steps, end="hold"), dataset_size=192, epochs=3, on_trace_end="error")

    def test_control_c(self):
        # The first use of a name loads the core, which is not what is interrupted here.
        plan, simulate = rubato.plan, rubato.simulate
        for call in (lambda: plan(32, dataset_size=3200, epochs=1_000_000),
                     lambda: simulate(32, epochs=1_000_000)):
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            start = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                call()
                # It may have ended before.
                timer.join()
            self.assertLess(time.monotonic() - start, 5)


class Simulations(TestCase):
    def test_is_that_of_the_command_line(self):
        theirs = json.loads(rubato_program("simulate", "--json", "--trace=spot:most=64,seed=1", "--price=0.9",
                                           "--cluster=substep=0.1,restart=60", "--on-trace-end=hold", "--epochs=2,3")[1])
        ours = rubato.simulate("spot:most=64,seed=1", price=0.9, cluster="substep=0.1,restart=60", on_trace_end="hold",
                               epochs=[2, 3])
        self.assertEqual(ours.rows, 2)
        self.assertEqual(ours["epochs"].tolist(), [2, 3])
        for row, their in enumerate(theirs):
            for name in ("hours", "core_hours", "money", "idle_hours", "lost_hours", "restart_hours", "restarts"):
                self.assertEqual(ours[name][row], their["clock"][name], name)
            self.assertEqual(ours["steps"][row], their["steps"])
            self.assertEqual(ours["mean_batch"][row], their["mean_batch"])

    def test_ends_of_availabilities(self):
        short = rubato.Availability([0], [4], 1)
        self.assertEqual(rubato.simulate(short, epochs=2, on_trace_end="stop")["ended_by"].tolist(), ["out of devices"])
        held = rubato.simulate(short, epochs=2, on_trace_end="hold")
        self.assertEqual((held["epochs"].tolist(), held["ended_by"].tolist()), ([2], [None]))
        own = rubato.simulate(rubato.Availability([0], [4], 1, end="hold"), epochs=2)
        self.assertEqual(own["hours"].tolist(), held["hours"].tolist())

    def test_combinations(self):
        found = rubato.simulate([512, 256], on_trace_end="cycle", cores=[4, 8], minibatch=[32, 64], dataset_size=5120)
        self.assertEqual(list(zip(found["cores"], found["minibatch"])), [(4, 32), (4, 64), (8, 32), (8, 64)])
        self.assertNotEqual(found["hours"][0], found["hours"][2])
        with self.assertRaises(rubato.Error):
            rubato.simulate(64, dataset_size=-3)
        with self.assertRaisesRegex(rubato.Error, "known only while training"):
            rubato.simulate(64, batch="noise-scale:max=256")
        with self.assertRaisesRegex(TypeError, "simulate"):
            rubato.simulate(rule="linear")

    def test_simulate_takes_a_plugin(self):
        plugin = BINARY / "tests/app/libevery_part.so"
        found = rubato.simulate(64, batch=["fixed", "doubled:max=256"], epochs=3, dataset_size=640, plugin=plugin)
        self.assertEqual(found["steps"].tolist(), [30, 10 + 5 + 2])


if __name__ == "__main__":
    unittest.main()
