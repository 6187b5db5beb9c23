"""Training by names: the same bits as the command line, the metrics, the weights."""

import json
import locale
import os
import random
import signal
import unittest
import unittest.mock
import warnings

import rubato  # Before numpy, which loads OpenBLAS.
import numpy
import torch
from support import SHARED, TestCase, rubato_program, summary_of_command_line

SMALL = {"model": "softmax", "epochs": 2, "samples": 4000}


class _Traced(torch.nn.Module):
    """TorchScript compiles none with a variable number of arguments."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, *inputs):
        return self.linear(inputs[0])


def _loss(output, target):
    return torch.nn.functional.cross_entropy(output, target)


def _process():
    """What belongs to the process, and is nobody's to change."""
    umask = os.umask(0)
    os.umask(umask)
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {"torch's generator": torch.get_rng_state().tolist(), "random": random.getstate(),
            "numpy.random": [str(part) for part in numpy.random.get_state()], "default type": torch.get_default_dtype(),
            "threads": torch.get_num_threads(), "threads between operators": torch.get_num_interop_threads(),
            "grad": torch.is_grad_enabled(), "autocast": torch.is_autocast_cpu_enabled(),
            "deterministic": torch.are_deterministic_algorithms_enabled(), "mkldnn": torch.backends.mkldnn.flags,
            "fusers": torch._C._jit_texpr_fuser_enabled(), "profiling": torch._C._get_graph_executor_optimize(),
            "denormal": torch.tensor(1e-40, dtype=torch.float32).mul(0.5).item(), "warnings": list(warnings.filters),
            "signals": handlers, "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask,
            "locale": locale.setlocale(locale.LC_ALL), "numpy's errors": numpy.geterr()}


class Forks(TestCase):
    def test_are_the_run_itself(self):
        folder = self.folder()
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        numbers = numpy.random.default_rng(1).normal(size=(512, 4)).astype("float32")
        data = (numbers, (numbers.sum(1) > 0).astype("int64"))
        options = {"loss": "cross-entropy", "trace": 64, "minibatch": 8, "epochs": 3, "digest": "every=1"}
        run = rubato.train(model, data, out=f"{folder}/run", momentum=0.9, **options)
        fork = rubato.train(model, data, from_run=f"{folder}/run", from_step=11, threads=1, out=f"{folder}/fork")
        self.assertEqual(fork.sha256, run.sha256)
        self.assertEqual(list(fork.steps["digest"]), list(run.steps["digest"])[11:])
        # It needs no folder.
        kept_nowhere = rubato.train(model, data, from_run=f"{folder}/run", from_step=11)
        self.assertEqual(kept_nowhere.sha256, run.sha256)
        other = rubato.train(model, data, from_run=f"{folder}/run", from_step=11, lr=0.5)
        self.assertNotEqual(other.sha256, run.sha256)

    def test_say_what_is_wrong(self):
        folder = self.folder()
        rubato.train(out=f"{folder}/run", **SMALL)
        with self.assertRaisesRegex(rubato.Error, "--minibatch was 32, is 8"):
            rubato.train(from_run=f"{folder}/run", from_step=3, minibatch=8)
        with self.assertRaisesRegex(rubato.Error, "has .* steps; accepted: 0 to"):
            rubato.train(from_run=f"{folder}/run", from_step=3000)
        with self.assertRaisesRegex(TypeError, "belong together"):
            rubato.train(from_run=f"{folder}/run")
        with self.assertRaisesRegex(rubato.Error, "without config and resume"):
            rubato.train(from_run=f"{folder}/run", from_step=3, resume=f"{folder}/run")


class SameBits(TestCase):
    def test_mnist_cnn_on_digits(self):
        result = rubato.train("mnist-cnn", "digits", rule="adascale", cores=8, epochs=1, samples=3000)
        theirs = summary_of_command_line("--model=mnist-cnn", "--rule=adascale", "--cores=8", "--epochs=1", "--samples=3000")
        self.assertEqual(result.sha256, theirs["weights_sha256"])
        self.assertEqual(result.summary["kernels"], theirs["kernels"])
        self.assertEqual(result.test_accuracy, theirs["final_test_accuracy"])

    def test_by_eigen(self):
        result = rubato.train("mlp", epochs=1, optimizer="adam", lr=0.001, rule="root", ref_batch=64)
        theirs = summary_of_command_line("--model=mlp", "--epochs=1", "--optimizer=adam", "--lr=0.001", "--rule=root",
                                         "--ref-batch=64")
        self.assertEqual(result.summary["engine"], "eigen")
        self.assertEqual(result.sha256, theirs["weights_sha256"])

    def test_traces_at_hand(self):
        steps = [(64, 2), (96, 3), (256, 8), (32, 1)]
        folder = self.folder()
        rubato.Trace(steps).to_csv(folder / "trace.csv")
        # Of a Trace, its own end holds where None says nothing.
        self.assertEqual(rubato.train("softmax", trace=rubato.Trace(steps, end="stop"), on_trace_end=None).steps.rows, 4)
        theirs = summary_of_command_line("--model=softmax", f"--trace={folder}/trace.csv", "--on-trace-end=cycle",
                                         "--epochs=1")["weights_sha256"]
        for trace in (rubato.Trace(steps, end="cycle"), folder / "trace.csv"):
            kept = {} if isinstance(trace, rubato.Trace) else {"on_trace_end": "cycle"}
            self.assertEqual(rubato.train("softmax", trace=trace, epochs=1, **kept).sha256, theirs)
        self.assertEqual(rubato.train("softmax", trace=steps, on_trace_end="cycle", epochs=1).sha256, theirs)
        self.assertNotEqual(rubato.train("softmax", trace=[64], on_trace_end="cycle", epochs=1).sha256, theirs)

    def test_traces_at_hand_in_run_folders(self):
        folder = self.folder() / "run"
        trace = rubato.Trace([(64, 2), (96, 3)], end="cycle")
        first = rubato.train("softmax", trace=trace, epochs=1, out=folder)
        self.assertEqual(json.loads((folder / "summary.json").read_text())["trace"], "a list of 2 steps")
        self.assertEqual(first.summary["trace"], "a list of 2 steps")
        self.assertEqual(list(rubato.Trace.read(folder / "trace.csv")), [(64, 2), (96, 3)])
        for file in folder.rglob("*.toml"):
            self.assertNotIn("/rubato-", file.read_text())
        whole = rubato.train("softmax", trace=trace, epochs=2).sha256
        self.assertEqual(rubato.train(resume=folder, epochs=2).sha256, whole)

    def test_modelled_time(self):
        devices = rubato.Trace.generate("spot:most=8,seed=1")
        result = rubato.train("softmax", trace=devices, clock="virtual", on_trace_end="hold", epochs=1)
        theirs = summary_of_command_line("--model=softmax", "--trace=spot:most=8,seed=1", "--clock=virtual",
                                         "--on-trace-end=hold", "--epochs=1")
        self.assertEqual(result.sha256, theirs["weights_sha256"])
        self.assertEqual(result.steps["hours"][-1], theirs["clock"]["hours"])

    def test_whatever_the_threads_modes_are(self):
        wanted = rubato.train("mnist-cnn", epochs=1, samples=1000, threads=2).sha256
        torch.set_flush_denormal(True)
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        self.addCleanup(torch.set_flush_denormal, False)
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(rubato.train("mnist-cnn", epochs=1, samples=1000, threads=1).sha256, wanted)
        self.assertEqual(torch.get_default_dtype(), torch.float64)

    def test_mnist_in_six_lines(self):
        data = SHARED / "data" / "mnist"
        if not data.is_dir():
            self.skipTest(f"no {data} here")
        result = rubato.train("mnist-cnn", f"mnist:{data}", cores=8, epochs=1, samples=6000)
        theirs = summary_of_command_line("--model=mnist-cnn", f"--data=mnist:{data}", "--cores=8", "--epochs=1",
                                         "--samples=6000")
        self.assertEqual(result.sha256, theirs["weights_sha256"])
        self.assertGreater(result.test_accuracy, 0.6)


class Process(TestCase):
    def test_numbers_of_threads_are_what_they_were(self):
        before = torch.get_num_threads()
        self.addCleanup(torch.set_num_threads, before)
        for count in (3, 2):
            torch.set_num_threads(count)
            # Of each training: the second begins with the numbers that the first has restored.
            self.assertEqual(rubato.train("mnist-cnn", epochs=1, samples=1000).sha256,
                             rubato.train("mnist-cnn", epochs=1, samples=1000, threads=1).sha256)
            self.assertEqual(torch.get_num_threads(), count)

    def test_nothing_of_the_process_is_changed(self):
        x, y = torch.rand(40, 4), torch.randint(0, 2, (40,))
        fixed = x.numpy().copy()
        fixed.flags.writeable = False
        traced = _Traced()
        script = torch.jit.script(torch.nn.Linear(4, 2))

        def result_of(*arguments, **options):
            return rubato.train(*arguments, epochs=1, cores=2, trace=32, **options)

        images = torch.zeros(3, 1, 28, 28, dtype=torch.uint8)
        named, own = result_of("mnist-cnn", samples=320), result_of(script, (x, y))
        calls = {
            "train": lambda: result_of("mnist-cnn", samples=320),
            "dense": lambda: result_of("softmax", samples=320),
            "script": lambda: result_of(script, (x, y)),
            "traced": lambda: result_of(traced, (x, y)),
            "fixed": lambda: result_of(script, (fixed, y.numpy())),
            "data set": lambda: result_of(script, torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 8, True)),
            "loss": lambda: result_of(script, (x, y), loss=_loss),
            "module": lambda: result_of("mlp", samples=320).module,
            "predict": lambda: named.predict(images),
            "predict, own": lambda: own.predict(fixed),
            "evaluate": lambda: named.evaluate(images, torch.zeros(3, dtype=torch.long)),
            "evaluate, own": lambda: own.evaluate(x, y),
            "plan": lambda: rubato.plan(trace=64),
            "simulate": lambda: rubato.simulate(model="mnist-cnn", trace="spot:most=8,seed=1", cluster="substep=1"),
            "trace": lambda: rubato.Trace.generate("spot:most=8,seed=1"),
            "compare": lambda: rubato.compare(model="softmax", samples=320, trace=32, seed=1, tune="never",
                                              rule=["linear", lambda b, s: 1.0]),
            "error": lambda: self.assertRaises(rubato.Error, rubato.train, "mnist-cnn", samples=320, trace=31, epochs=0),
        }
        torch.manual_seed(7)
        numpy.random.seed(7)
        random.seed(7)
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        for name, call in calls.items():
            with self.subTest(name):
                before = _process()
                with unittest.mock.patch("warnings.simplefilter", side_effect=AssertionError), \
                        unittest.mock.patch("warnings.filterwarnings", side_effect=AssertionError):
                    call()
                self.assertEqual(_process(), before)

    def test_callbacks_have_the_generator_and_the_type_of_their_process(self):
        torch.manual_seed(5)
        wanted = [torch.rand(2).tolist() for _ in range(12)]
        torch.manual_seed(5)
        drawn = [torch.rand(2).tolist()]
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        types = set()

        def draw(*_):
            types.add(torch.get_default_dtype())
            drawn.append(torch.rand(2, dtype=torch.float32).tolist())

        def rule(batch, statistics):
            draw()
            return statistics["scale"]

        result = rubato.train("mnist-cnn", epochs=1, samples=320, trace=64, rule=rule, on_step=draw)
        draw()
        self.assertEqual(len(drawn), 12)
        self.assertEqual(drawn, wanted)
        self.assertEqual(types, {torch.float64})
        self.assertEqual(result.sha256, rubato.train("mnist-cnn", epochs=1, samples=320, trace=64, rule="linear").sha256)


class Results(TestCase):
    def test_callbacks_have_every_column_of_the_schema(self):
        code, schema, _ = rubato_program("list", "records", "--json")
        self.assertEqual(code, 0)

        def columns(record):
            found = {}
            for key, field in record["properties"].items():
                found |= columns(field) if "properties" in field else {field.get("column", key): field}
            return found

        records = {"step": [], "epoch": []}
        options = dict(clock="virtual", cluster="substep=0.1", precision="fp16", log_noise=True, top_k=3)
        result = rubato.train(on_step=records["step"].append, on_epoch=records["epoch"].append, **(SMALL | options))
        tables = {"step": result.steps, "epoch": result.epochs}
        for kind, seen in records.items():
            wanted = columns(json.loads(schema)["$defs"][kind])
            names = {name for name in wanted if "*" not in name} - {"kind"}
            self.assertEqual(set(seen[0]), names)
            measured = {name for record in seen for name, value in record.items() if value is not None}
            self.assertEqual(set(tables[kind]), measured - {"substeps"})
            self.assertGreater(len(measured), 15)

    def test_metrics_are_those_of_the_run_folder(self):
        folder = self.folder() / "run"
        result = rubato.train(out=folder, log_noise=True, log_minibatches=True, top_k=3, digest="every=2", **SMALL)
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if line["kind"] == "step"]
        for name in ("step", "epoch", "batch", "cores", "scale", "lr", "gain", "iterations", "loss", "noise_scale",
                     "measured_gain"):
            # What was not measured in a step is NaN here and left out or null there.
            values = [None if value != value else value for value in result.steps[name].tolist()]
            self.assertEqual(values, [step.get(name) for step in steps], name)
            self.assertNotEqual(set(values), {None}, name)
        digests = [step.get("digest", "") for step in steps]
        self.assertEqual(result.steps["digest"].tolist(), digests)
        self.assertEqual([bool(digest) for digest in digests], [(step + 1) % 2 == 0 for step in range(len(steps))])
        self.assertRegex(result.digest, "^[0-9a-f]{32}$")
        self.assertEqual(result.steps["wall_seconds"].tolist(), [step["seconds"]["wall"] for step in steps])
        # Whatever it is, it has a column, but for what is a list.
        flat = {f"{part}_seconds" for part in steps[0]["seconds"]} | (set().union(*steps) - {"kind", "seconds", "substeps"})
        self.assertEqual(set(result.steps), flat | {"applied"})
        epochs = [line for line in lines if line["kind"] == "epoch"]
        for name in ("epoch", "steps", "samples", "train_loss", "test_loss", "test_accuracy", "test_top_k_accuracy"):
            self.assertEqual(result.epochs[name].tolist(), [epoch[name] for epoch in epochs], name)
        minibatches = [line for line in lines if line["kind"] == "minibatch"]
        for name in ("step", "minibatch", "core", "substep", "loss", "gradient_norm"):
            self.assertEqual(result.minibatches[name].tolist(), [line[name] for line in minibatches], name)
        self.assertEqual(result.summary, json.loads((folder / "summary.json").read_text()))
        self.assertEqual(result.folder, str(folder))
        self.assertEqual(result.other_weights, {})
        self.assertIsNone(result.best_epoch)

    def test_a_run_has_the_records_of_its_result(self):
        folder = self.folder() / "run"
        result = rubato.train("softmax", trace=128, samples=1280, out=folder, log_minibatches=True, monitor="*.weight",
                              fault="core=2,step=2", on_step=lambda step: {"own": 1} if step["step"] > 2 else None,
                              on_epoch=lambda epoch: {"own": 2})
        run = rubato.Run(folder)
        for kind in ("steps", "epochs", "minibatches", "faults", "monitored"):
            of_result, of_run = getattr(result, kind), getattr(run, kind)
            for name, column in of_result.items():
                self.assertEqual(of_run[name].dtype, column.dtype, name)
                numpy.testing.assert_array_equal(of_run[name], column, name)
        self.assertEqual((run.summary, run.sha256, run.folder), (result.summary, result.sha256, str(folder)))
        self.assertEqual(run._repr_html_(), result._repr_html_())
        with self.assertRaisesRegex(rubato.Error, "accepted: the folder of a run"):
            rubato.Run(self.folder())

    def test_plots(self):
        result = rubato.train(**SMALL)
        axes = unittest.mock.Mock()
        self.assertIs(result.plot(axes=axes), axes)
        steps, losses = axes.plot.call_args.args
        self.assertEqual((steps[0], losses.tolist()), (1, result.steps["loss"].tolist()))
        result.plot("test_accuracy", axes)
        self.assertEqual(axes.plot.call_args.args[1].tolist(), result.epochs["test_accuracy"].tolist())
        for column in ("digest", "accuracy"):
            with self.assertRaisesRegex(rubato.Error, f"no column of numbers '{column}'; accepted: .*loss"):
                result.plot(column, axes)

    def test_metrics_of_real_targets_and_of_tokens(self):
        inputs = torch.rand(64, 3)
        tokens = torch.randint(0, 7, (64, 6))
        for model, data, name, metric in (("mlp", (inputs, inputs), "test_mse", "mse"),
                                          ("transformer:heads=1,dim=4", (tokens, tokens), "test_perplexity", "perplexity")):
            folder = self.folder() / "run"
            result = rubato.train(model, data, validation=data, trace=32, epochs=2, metric=metric, out=folder)
            lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
            wanted = [line[name] for line in lines if line["kind"] == "epoch"]
            self.assertEqual(result.epochs[name].tolist(), wanted)

    def test_faults_and_monitored_tensors(self):
        folder = self.folder() / "run"
        substeps = []
        options = {"fault": "core=2,step=2+core=0,step=4", "monitor": "*.weight", "monitor_every": 2, "cores": 4}
        result = rubato.train("softmax", trace=128, samples=1280, epochs=1, out=folder,
                              on_step=lambda step: substeps.append(step["substeps"]), **options)
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for columns, kind in ((result.faults, "fault"), (result.monitored, "monitor")):
            wanted = [{name: value for name, value in line.items() if name != "kind"} for line in lines if line["kind"] == kind]
            self.assertGreater(len(wanted), 1)
            self.assertEqual([dict(zip(columns, row)) for row in zip(*(column.tolist() for column in columns.values()))], wanted)
        self.assertEqual(substeps, [line["substeps"] for line in lines if line["kind"] == "step"])
        # Without a folder, too.
        self.assertEqual(rubato.train("softmax", trace=128, samples=1280, **options).monitored.rows, result.monitored.rows)

    def test_columns_have_types_and_become_pandas(self):
        steps = rubato.train(**SMALL).steps
        self.assertEqual([steps[name].dtype.kind for name in ("step", "loss", "applied")], ["i", "f", "b"])
        self.assertNotIn("noise_scale", steps)
        try:
            import pandas
        except ImportError:
            with self.assertRaises(ImportError):
                steps.to_pandas()
            self.skipTest("no pandas here (Debian: python3-pandas)")
        frame = steps.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame.columns), list(steps))
        self.assertEqual(frame["loss"].tolist(), steps["loss"].tolist())
        self.assertEqual(frame["applied"].dtype.kind, "b")

    def test_weights_and_module(self):
        for model in ("mnist-cnn", "softmax", "mlp"):
            folder = self.folder() / "run"
            result = rubato.train(model, engine="libtorch", epochs=1, samples=1000, out=folder, keep_best=True)
            file = torch.load(folder / "weights.pt", weights_only=True)
            self.assertEqual(list(result.state_dict), list(file))
            for name, tensor in file.items():
                self.assertTrue(torch.equal(result.state_dict[name], tensor), name)
                self.assertTrue(torch.equal(result.module.state_dict()[name], tensor), name)
            self.assertEqual(result.best_epoch, 0)
            self.assertTrue(torch.equal(result.other_weights["best"][name], tensor))
            images = torch.zeros(2, 1, 28, 28)
            self.assertEqual(result.module(images).shape, (2, 10))
            self.assertFalse(result.module.training)

    def test_resume_from_python_and_from_the_command_line(self):
        whole = rubato.train("softmax", epochs=3).sha256
        folder = self.folder() / "run"
        first = rubato.train("softmax", epochs=2, out=folder)
        self.assertEqual(first.epochs.rows, 2)
        code, _, errors = rubato_program("train", "--quiet", f"--resume={folder}", "--epochs=3")
        self.assertEqual(code, 0, errors)
        self.assertEqual(json.loads((folder / "summary.json").read_text())["weights_sha256"], whole)
        folder = self.folder() / "run"
        rubato.train("softmax", epochs=2, out=folder)
        second = rubato.train(resume=folder, epochs=3)
        self.assertEqual(second.sha256, whole)
        self.assertEqual(second.epochs["epoch"].tolist(), [2])

    def test_what_does_nothing_is_a_warning(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rubato.train(trace=[(64, 2)] * 3, on_trace_end="cycle", cores=4, **SMALL)
        self.assertIn("cores", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)


if __name__ == "__main__":
    unittest.main()
