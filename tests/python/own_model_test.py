"""Models, losses and data of the user's own."""

import resource
import unittest

import numpy
import rubato
import torch
from support import TestCase
from torch import nn
from torch.nn import functional as F

SAMPLES = 512


def blobs(seed=0, samples=SAMPLES):
    """Three classes of points in the plane."""
    random = numpy.random.RandomState(seed)
    targets = random.randint(0, 3, samples)
    points = numpy.array([[0, 2], [2, -1], [-2, -1]])[targets] + random.normal(scale=0.3, size=(samples, 2))
    return points.astype(numpy.float32), targets.astype(numpy.int64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.2)
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        return self.last(self.drop(F.relu(self.norm(self.first(x)))))


class Plain(nn.Module):
    """Without anything that a mode changes, and with something that TorchScript does not compile."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)

    def forward(self, x, *rest):
        return self.linear(x) if isinstance(x, torch.Tensor) and not rest else None


def seeded(make):
    torch.manual_seed(1)
    return make()


OPTIONS = {"trace": 64, "epochs": 3, "lr": 0.2}


class Models(TestCase):
    def test_a_module_is_trained_and_left_as_it_is(self):
        model = seeded(Net)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        result = rubato.train(model, blobs(), validation=blobs(1), **OPTIONS)
        self.assertGreater(result.test_accuracy, 0.95)
        self.assertEqual(set(result.state_dict), set(before))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)
        self.assertFalse(torch.equal(result.state_dict["first.weight"], before["first.weight"]))
        model.load_state_dict(result.state_dict)
        inputs = torch.from_numpy(blobs(1)[0])
        self.assertTrue(torch.equal(model.eval()(inputs), result.module(inputs)))
        self.assertEqual(result.summary["model"], "own")
        self.assertEqual(result.summary["data"], "own")

    def test_bits_do_not_depend_on_threads_and_cores(self):
        hashes = {rubato.train(seeded(Net), blobs(), threads=threads, cores=cores, **OPTIONS).sha256
                  for threads, cores in ((1, 1), (2, 3), (4, 8))}
        self.assertEqual(len(hashes), 1)

    def test_script_modules_and_modules_are_the_same(self):
        wanted = rubato.train(seeded(Net), blobs(), **OPTIONS).sha256
        self.assertEqual(rubato.train(torch.jit.script(seeded(Net)), blobs(), **OPTIONS).sha256, wanted)

    def test_what_cannot_be_scripted_is_traced(self):
        with self.assertRaises(Exception):
            torch.jit.script(Plain())
        result = rubato.train(seeded(Plain), blobs(), validation=blobs(1), **OPTIONS)
        self.assertGreater(result.test_accuracy, 0.95)

    def test_what_is_scripted_and_cannot_be_saved_is_traced(self):
        class WithLabels(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 3)

            def forward(self, x, labels=None):
                logits = self.linear(x)
                return logits if labels is None else F.cross_entropy(logits, labels)

        torch.jit.script(WithLabels())
        result = rubato.train(seeded(WithLabels), blobs(), **OPTIONS)
        self.assertEqual(result.sha256, rubato.train(seeded(Plain), blobs(), **OPTIONS).sha256)

    def test_weight_norm_is_traced(self):
        def make():
            return nn.Sequential(nn.utils.weight_norm(nn.Linear(2, 16)), nn.ReLU(), nn.Linear(16, 3))

        model = seeded(make)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        result = rubato.train(model, blobs(), trace=64, ref_batch=64, lr=0.1, momentum=0, samples=192)
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, before[name]), name)
        self.assertIn("0.weight_g", result.state_dict)
        self.assertFalse(torch.equal(result.state_dict["0.weight_g"], before["0.weight_g"]))
        # The module computes the same with the trained weights, and all data in one batch the same step.
        model.load_state_dict(result.state_dict)
        inputs = torch.from_numpy(blobs(1)[0])
        self.assertTrue(torch.allclose(model(inputs), result.module(inputs), atol=1e-6))
        inputs, targets = (torch.from_numpy(array[:64]) for array in blobs())
        step = rubato.train(seeded(make), (inputs, targets), minibatch=64, trace=64, ref_batch=64, lr=0.1, momentum=0, epochs=1)
        theirs = seeded(make)
        F.cross_entropy(theirs(inputs), targets).backward()
        for name, parameter in theirs.named_parameters():
            wanted = parameter.detach() - 0.1 * parameter.grad
            self.assertTrue(torch.allclose(step.state_dict[name], wanted, atol=1e-6), name)

    def test_traces_are_of_a_copy_and_of_what_training_gives(self):
        seen = []

        class Looks(Plain):
            def __init__(self, inputs):
                super().__init__()
                self.linear = nn.Linear(inputs, 3)
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x, *rest):
                seen.append((tuple(int(size) for size in x.shape), x.dtype))
                self.calls.add_(1)
                return self.linear(x.flatten(1))

        pixels = numpy.random.RandomState(3).randint(0, 256, (100, 5, 4), dtype=numpy.uint8)
        classes = numpy.arange(100) % 3
        reals = pixels.reshape(100, 20).astype(numpy.float64)
        path = self.folder() / "data.npz"
        numpy.savez(path, x=reals, y=classes)
        for data, model, wanted in (
                ((pixels, classes), Looks(20), ((16, 1, 5, 4), torch.float32)),
                ((reals, classes), Looks(20), ((16, 20), torch.float32)),
                ((reals, classes), Looks(20).double(), ((16, 20), torch.float64)),
                (f"tensors:{path}", Looks(20), ((16, 20), torch.float32))):
            seen.clear()
            torch.manual_seed(3)
            generator = torch.random.get_rng_state()
            result = rubato.train(model, data, minibatch=16, trace=16, epochs=1, lr=0.01)
            self.assertEqual(set(seen), {wanted})
            self.assertEqual(model.calls.item(), 0)
            # A count of the steps, which begins at that of the module.
            self.assertEqual(result.state_dict["calls"].item(), 6)
            self.assertTrue(torch.equal(torch.random.get_rng_state(), generator))

    def test_own_model_on_named_data(self):
        class Linear(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(784, 10)

            def forward(self, x):
                return F.log_softmax(self.linear(x.flatten(1)), dim=1)

        twin = seeded(Linear)
        result = rubato.train(twin, "digits", loss="nll", epochs=1)
        self.assertGreater(result.test_accuracy, 0.8)
        # As many samples as the model with a name sees.
        self.assertEqual(result.summary["samples"], rubato.train("softmax", epochs=1).summary["samples"])

    def test_named_model_on_own_data(self):
        images = torch.rand(256, 2, 16, 16)
        targets = (images.mean(dim=(1, 2, 3)) > 0.5).long() + 1
        result = rubato.train("toy-net", (images, targets), trace=64, epochs=1)
        self.assertEqual(result.module(images[:2]).shape, (2, 3))
        self.assertEqual(result.summary["model"], "toy-net")

    def test_float64(self):
        inputs, targets = blobs()
        result = rubato.train(seeded(Net).double(), (inputs.astype(numpy.float64), targets), **OPTIONS)
        self.assertEqual(result.state_dict["first.weight"].dtype, torch.float64)


    def test_module_is_what_was_trained(self):
        images = torch.rand(128, 1, 8, 8)
        classes = (images.mean(dim=(1, 2, 3)) > 0.5).long()
        tokens = torch.randint(0, 7, (128, 6))
        cases = {"mlp:hidden=8": (images, classes), "mlp:hidden=8/4,activation=tanh": (images, classes), "softmax": (images, classes), "resnet20:width=4": (images, classes),
                 "transformer:heads=2,dim=8,hidden=8,layers=1": (images, classes),
                 "transformer:heads=1,dim=4": (tokens, tokens.roll(1, 1)),
                 "mlp:hidden=4/4/4": (images, images.mean(dim=(2, 3))),
                 "mlp:hidden=4,activation=tanh": (images, images.mean(dim=(2, 3)))}
        for model, (inputs, targets) in cases.items():
            result = rubato.train(model, (inputs, targets), validation=(inputs, targets), trace=32, epochs=1, lr=0.01)
            outputs = result.module(inputs)
            if targets.is_floating_point():
                self.assertAlmostEqual(F.mse_loss(outputs, targets).item(), result.epochs["test_loss"][-1], places=5)
            else:
                loss = F.nll_loss(outputs.flatten(0, -2), targets.flatten())
                self.assertAlmostEqual(loss.item(), result.epochs["test_loss"][-1], places=5, msg=model)

    def test_module_of_real_targets_without_a_test_set(self):
        inputs = torch.rand(128, 3)
        path = self.folder() / "data.npz"
        numpy.savez(path, x=inputs.numpy(), y=(5 * inputs).numpy())
        for engine in ("eigen", "libtorch"):
            result = rubato.train("mlp:hidden=16", f"tensors:{path}", engine=engine, trace=32, epochs=200, lr=0.05)
            self.assertLess(F.mse_loss(result.module(inputs), 5 * inputs).item(), 0.1, engine)

    def test_script_files(self):
        path = self.folder() / "net.pt"
        torch.jit.script(seeded(Net)).save(str(path))
        result = rubato.train(f"script:{path}", blobs(), **OPTIONS)
        self.assertEqual(result.sha256, rubato.train(seeded(Net), blobs(), **OPTIONS).sha256)
        inputs = torch.from_numpy(blobs(1)[0])
        twin = seeded(Net)
        twin.load_state_dict(result.state_dict)
        self.assertTrue(torch.equal(result.module(inputs), twin.eval()(inputs)))

    def test_weights(self):
        first = rubato.train(seeded(Net), blobs(), out=self.folder() / "run", **OPTIONS)
        wanted = rubato.train(first.module, blobs(), **OPTIONS).sha256
        self.assertEqual(rubato.train(Net(), blobs(), weights=first.state_dict, **OPTIONS).sha256, wanted)
        self.assertEqual(rubato.train(Net(), blobs(), weights=first.folder, **OPTIONS).sha256, wanted)
        with self.assertRaisesRegex(rubato.Error, "^--weights: weights: "):
            rubato.train(Plain(), blobs(), weights=first.state_dict, **OPTIONS)


    def test_buffers_that_are_not_persistent_are_in_no_state_dict(self):
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 3)
                self.register_buffer("scale", torch.full((2,), 0.5), persistent=False)
                self.register_buffer("kept", torch.ones(2))

            def forward(self, x):
                return self.linear(x * self.scale * self.kept)

        model = Scaled()
        folder = self.folder() / "run"
        result = rubato.train(model, blobs(), validation=blobs(), keep_best=True, out=folder, **OPTIONS)
        for weights in (result.state_dict, result.other_weights["best"]):
            self.assertEqual(weights.keys(), model.state_dict().keys())
        model.load_state_dict(result.state_dict)
        inputs = torch.from_numpy(blobs()[0])
        self.assertTrue(torch.equal(result.module(inputs), model(inputs)))
        for name in ("weights.pt", "best.pt"):
            self.assertEqual(torch.load(folder / name).keys(), model.state_dict().keys())
        for weights in (result.state_dict, folder, folder / "best.pt"):
            rubato.train(Scaled(), blobs(), weights=weights, trace=64, epochs=1)


class Losses(TestCase):
    def test_one_logit_tells_two_classes_apart(self):
        inputs, _ = blobs()
        targets = (inputs[:, 0] > 0).astype(numpy.int64)

        def own(output, target):
            return F.binary_cross_entropy_with_logits(output.squeeze(1), target.float())

        for loss in ("bce", own):
            result = rubato.train(nn.Linear(2, 1), (inputs, targets), validation=(inputs, targets), loss=loss, trace=64,
                                  epochs=20, lr=0.5)
            right = ((result.predict(inputs)[:, 0] > 0).long().numpy() == targets).mean()
            self.assertGreater(right, 0.9)
            self.assertAlmostEqual(result.test_accuracy, right)
            self.assertAlmostEqual(result.evaluate(inputs, targets)["accuracy"], right)

    def sha_by(self, loss):
        return rubato.train(seeded(Plain), blobs(), loss=loss, **OPTIONS).sha256

    def test_names_functions_and_modules(self):
        def function(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(output, target)

        wanted = self.sha_by(None)
        for loss in ("cross-entropy", function, F.cross_entropy, nn.CrossEntropyLoss(), torch.jit.script(function)):
            self.assertEqual(self.sha_by(loss), wanted, loss)
        self.assertNotEqual(self.sha_by(nn.CrossEntropyLoss(label_smoothing=0.1)), wanted)

    def test_label_smoothing_is_the_training_losss_alone(self):
        smooth = rubato.train(seeded(Plain), blobs(), validation=blobs(), label_smoothing=0.4, trace=64, epochs=1, lr=1e-9)
        plain = rubato.train(seeded(Plain), blobs(), validation=blobs(), trace=64, epochs=1, lr=1e-9)
        self.assertAlmostEqual(smooth.epochs["test_loss"][0], plain.epochs["test_loss"][0], places=6)
        self.assertNotAlmostEqual(smooth.epochs["train_loss"][0], plain.epochs["train_loss"][0], places=3)

    def test_a_sum_over_weights_is_the_mean_of_the_step(self):
        def weighted(output: torch.Tensor, target: torch.Tensor):
            counted = target.ne(2).sum()
            return F.cross_entropy(output, target, ignore_index=2, reduction="sum"), counted

        def trained(loss, minibatch):
            return rubato.train(seeded(Plain), blobs(), loss=loss, minibatch=minibatch, trace=64, ref_batch=64, epochs=1,
                                lr=0.5)

        wanted = trained(weighted, 64)
        for loss in (weighted, "cross-entropy:ignore=2"):
            for minibatch in (64, 8, 1):
                found = trained(loss, minibatch)
                self.assertEqual(list(found.steps["weight"]), list(wanted.steps["weight"]))
                for name, tensor in wanted.state_dict.items():
                    torch.testing.assert_close(found.state_dict[name], tensor, rtol=1e-5, atol=1e-6)
        # The mean of each minibatch is another thing.
        means = trained(nn.CrossEntropyLoss(ignore_index=2), 8)
        off = max((means.state_dict[name] - tensor).abs().max().item() for name, tensor in wanted.state_dict.items())
        self.assertGreater(off, 1e-3)

    def test_of_models_with_a_name(self):
        def mean_square(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return F.mse_loss(output, F.one_hot(target, output.size(1)).float())

        named = rubato.train("softmax", loss="mse", samples=2048, lr=0.01)
        own = rubato.train("softmax", loss=mean_square, samples=2048, lr=0.01)
        self.assertAlmostEqual(named.epochs["test_loss"][-1], own.epochs["test_loss"][-1], places=5)
        self.assertNotEqual(named.sha256, rubato.train("softmax", samples=2048, lr=0.01, engine="libtorch").sha256)

    def test_numbers_as_targets_are_least_squares(self):
        inputs = torch.rand(256, 2)
        targets = inputs @ torch.tensor([[1.0], [-2.0]])
        result = rubato.train(nn.Linear(2, 1), (inputs, targets), validation=(inputs, targets), trace=32, epochs=40, lr=0.3)
        self.assertLess(result.epochs["test_loss"][-1], 1e-4)
        self.assertIsNone(result.test_accuracy)


class Data(TestCase):
    def test_forms(self):
        inputs, targets = blobs()
        wanted = rubato.train(seeded(Net), (inputs, targets), **OPTIONS).sha256
        read_only = inputs.copy()
        read_only.flags.writeable = False
        mirrored = numpy.ascontiguousarray(inputs[::-1])[::-1]
        for data in ((torch.from_numpy(inputs), torch.from_numpy(targets)), [inputs, targets], ([inputs], [targets]),
                     torch.utils.data.TensorDataset(torch.from_numpy(inputs), torch.from_numpy(targets)),
                     (inputs, targets.astype(numpy.int32)), (inputs, targets.astype(numpy.uint8)), (read_only, targets),
                     (mirrored, targets), (inputs.astype(">f4"), targets), (torch.from_numpy(inputs).requires_grad_(), targets)):
            self.assertEqual(rubato.train(seeded(Net), data, **OPTIONS).sha256, wanted)

    def test_are_those_of_a_file(self):
        random = numpy.random.RandomState(3)
        pixels = random.randint(0, 256, (256, 9, 9), dtype=numpy.uint8)
        targets = (pixels.mean(axis=(1, 2)) > 128).astype(numpy.uint8)
        path = self.folder() / "data.npz"
        for inputs in (pixels, pixels.astype(numpy.float64), pixels[::2].repeat(2, axis=0)):
            numpy.savez(path, x=inputs, y=targets)
            options = {"trace": 64, "epochs": 2, "model": "mlp", "engine": "libtorch", "validation": "0.25,seed=7"}
            of_file = rubato.train(data=f"tensors:{path}", **options)
            of_arrays = rubato.train(data=(inputs, targets), **options)
            self.assertEqual(of_arrays.sha256, of_file.sha256)
            self.assertEqual(of_arrays.epochs["test_loss"][-1], of_file.epochs["test_loss"][-1])
            self.assertIsNotNone(of_file.test_accuracy)

    def test_share_held_out(self):
        held = rubato.train(seeded(Net), blobs(), validation=0.5, epochs=1, trace=64)
        self.assertEqual(held.summary["samples"], SAMPLES / 2)
        self.assertLess(rubato.train("softmax", validation=0.1, epochs=1).summary["samples"], 11000)

    def test_several_inputs(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 3)

            def forward(self, x, y):
                return self.linear(torch.stack([x, y], dim=1))

        inputs, targets = blobs()
        columns = [inputs[:, 0], inputs[:, 1]]
        wanted = rubato.train(seeded(Plain), (inputs, targets), **OPTIONS)
        result = rubato.train(seeded(Two), (columns, targets), **OPTIONS)
        self.assertEqual(result.sha256, wanted.sha256)
        self.assertTrue(torch.equal(result.module(*map(torch.from_numpy, columns)),
                                    wanted.module(torch.from_numpy(inputs))))
        self.assertEqual(rubato.train(seeded(Two), (columns, targets.astype(numpy.uint8)), **OPTIONS).sha256, wanted.sha256)
        self.assertEqual(rubato.train(Two(), (columns, targets), weights=seeded(Two).state_dict(), **OPTIONS).sha256,
                         wanted.sha256)
        real = numpy.eye(3, dtype=numpy.float32)[targets]
        self.assertEqual(rubato.train(seeded(Two), (columns, real), **OPTIONS).sha256,
                         rubato.train(seeded(Plain), (inputs, real), **OPTIONS).sha256)
        with self.assertRaisesRegex(rubato.Error, "one tensor of inputs"):
            rubato.train("softmax", (columns, targets), **OPTIONS)

    def test_is_not_copied(self):
        megabytes = 400
        inputs = numpy.ones((megabytes * 256, 1024), dtype=numpy.float32)
        targets = numpy.zeros(len(inputs), dtype=numpy.int64)
        model = nn.Sequential(nn.Linear(1024, 3))
        rubato.train(model, (inputs[:256], targets[:256]), trace=64, epochs=1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rubato.train(model, (inputs, targets), trace=64, epochs=1, samples=256)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        self.assertLess(grown, megabytes / 2)

    def test_are_left_as_they_are_by_models_that_write(self):
        class Writes(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 3)

            def forward(self, x):
                return self.linear(x.add_(1.0))

        inputs, targets = blobs()
        before = inputs.copy()
        result = rubato.train(Writes(), (inputs, targets), validation=(inputs, targets), **OPTIONS)
        self.assertTrue((inputs == before).all())
        self.assertLess(result.epochs["test_loss"][-1], result.epochs["test_loss"][0])
        path = self.folder() / "inputs.bin"
        inputs.tofile(path)
        mapped = numpy.memmap(path, dtype=numpy.float32, mode="r", shape=inputs.shape)
        rubato.train(Writes(), (mapped, targets), validation=(mapped, targets), **OPTIONS)

    def test_resume_knows_the_data(self):
        folder = self.folder() / "run"
        whole = rubato.train(seeded(Net), blobs(), **{**OPTIONS, "epochs": 4}).sha256
        rubato.train(seeded(Net), blobs(), out=folder, **OPTIONS)
        with self.assertRaisesRegex(rubato.Error, "other data|training data"):
            rubato.train(seeded(Net), blobs(7), resume=folder, epochs=4)
        with self.assertRaisesRegex(rubato.Error, "own"):
            rubato.train(resume=folder, epochs=4)
        with self.assertRaises(rubato.Error):
            rubato.train(seeded(Plain), blobs(), resume=folder, epochs=4)
        self.assertEqual(rubato.train(seeded(Net), blobs(), resume=folder, epochs=4).sha256, whole)


class Refused(TestCase):
    def refuses(self, words, *arguments, **options):
        with self.assertRaisesRegex(rubato.Error, words):
            rubato.train(*arguments, **options)

    def test_models(self):
        class Neither(nn.Module):
            def forward(self, x, *rest):
                return numpy.tanh(x.nothing)

        class Modal(Plain):
            def __init__(self, drop):
                super().__init__()
                self.drop = drop

            def forward(self, x, *rest):
                return self.linear(self.drop(self, x))

        class Recurrent(Plain):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(1, 3, num_layers=2, dropout=0.5, batch_first=True)

            def forward(self, x, *rest):
                return self.lstm(x.unsqueeze(2))[0][:, -1]

        self.refuses("(?s)cannot be scripted .*variable number.*nor traced.*nothing", Neither(), blobs())
        drop = nn.Dropout()
        for model in (Modal(lambda self, x: drop.train(self.training)(x)), Recurrent(),
                      Modal(lambda self, x: F.dropout(x, training=self.training)),
                      Modal(lambda self, x: F.batch_norm(x, torch.zeros(2), torch.ones(2), training=self.training)),
                      Modal(lambda self, x: 2 * x if self.training else x)):
            self.refuses("(?s)cannot be scripted .*nor traced .*something else in training than in evaluation.*torch.jit.script",
                         model, blobs())
        for norm in (nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm):
            self.refuses("(?s)cannot be scripted .*nor traced .*spectral_norm of '0' computes something else in training",
                         nn.Sequential(norm(nn.Linear(2, 3))), blobs())
        self.refuses("'0' has the hook SpectralNorm", nn.Sequential(nn.utils.spectral_norm(nn.Linear(2, 3))), blobs())
        # What is in it and does nothing is no reason.
        rubato.train(Modal(lambda self, x: x), blobs(), trace=64, epochs=1)
        self.refuses("dict is not a model", {}, blobs())
        self.refuses("forward", nn.Linear(5, 3), blobs())
        self.refuses("parameter", nn.ReLU(), blobs())
        self.refuses("unknown model", "mnist-cnm")
        self.refuses("toy-net", "toy-net", blobs())

    def test_models_of_which_torchscript_leaves_something_out(self):
        class Layers(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.norm, self.last = nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)

            def features(self, x):
                return self.first(x)

            def forward(self, x):
                return self.last(self.norm(self.features(x)))

        class WithoutGradient(Layers):
            @torch.no_grad()
            def features(self, x):
                return self.first(x)

        class KeepsItsNorm(Layers):
            def train(self, mode=True):
                super().train(mode)
                self.norm.eval()
                return self

        class Embedded(nn.Module):
            def __init__(self, **options):
                super().__init__()
                self.table, self.last = nn.Embedding(5, 4, **options), nn.Linear(4, 3)

            def forward(self, x):
                return self.last(self.table(x[:, 0].abs().clamp(0, 4).long()))

        class Clamps(Layers):
            def forward(self, x):
                with torch.no_grad():
                    self.first.weight.clamp_(-0.1, 0.1)
                return self.last(self.first(x))

        for model, words in ((WithoutGradient(), "gradient of 'first"), (KeepsItsNorm(), "buffer 'norm"),
                             (Embedded(max_norm=0.5), "max_norm")):
            self.refuses(f"TorchScript does not compute what the model does in training: .*{words}", model, blobs())
        self.refuses("forward\\(\\) writes to parameter 'first.weight'", Clamps(), blobs(), trace=64)
        for sparse in (False, True):
            rubato.train(Embedded(sparse=sparse), blobs(), trace=64, epochs=1)
        hooked = Layers()
        hooked.first.register_full_backward_hook(lambda module, before, after: None)
        self.refuses("module 'first' has a hook of its gradient", hooked, blobs())
        hooked = Layers()
        hooked.first.weight.register_hook(lambda gradient: gradient * 0)
        self.refuses("parameter 'first.weight' has a hook of its gradient", hooked, blobs())
        for kind in (torch.half, torch.bfloat16, torch.cfloat):
            self.refuses("model: parameter 'weight' is .*, which is not trained; accepted: Float, Double",
                         nn.Linear(2, 3).to(kind), blobs())

    def test_data(self):
        inputs, targets = blobs()
        for data, words in (((inputs, targets[:5]), "'x' has 512 samples, and 'y' has 5"), (inputs, "is not data"),
                            ((inputs, None), "is not data"), ((inputs[:0], targets[:0]), "no sample"),
                            ((inputs, targets + 7), "(?s)loss.*(Target|target|out of)"), (([], targets), "inputs: the list is empty"),
                            ((inputs, targets.astype(str)), "can't convert"), (42, "is not data"),
                            ((torch.eye(3).to_sparse(), targets[:3]), "layout"),
                            ((torch.empty(4, 2, device="meta"), targets[:4]), "meta"),
                            ((numpy.ma.masked_less(inputs, 0), targets), "of its numbers are masked"),
                            ((inputs, numpy.ma.array(targets, mask=targets == 1)), "of its numbers are masked")):
            self.refuses(words, Plain(), data, trace=32)
        self.refuses("share of the training set", "softmax", "digits", validation=blobs())

    def test_losses_that_broadcast_or_learn(self):
        inputs, _ = blobs()
        targets = inputs @ numpy.array([2, -1], dtype=numpy.float32)
        for loss in (nn.MSELoss(), nn.L1Loss(), F.mse_loss):
            self.refuses(r"outputs of \[32, 1\] and targets of \[32\] are broadcast by the loss; accepted: targets of the "
                         "outputs' shape", nn.Linear(2, 1), (inputs, targets), loss=loss, trace=64)
            self.refuses(r"outputs of \[32, 3\] and targets of \[32, 1\]", nn.Linear(2, 3), (inputs, targets[:, None]),
                         loss=loss, trace=64)

        def arithmetic(output, target):
            return (output - target).square().mean()

        self.refuses("each with each", nn.Linear(2, 1), (inputs, targets), loss=arithmetic, trace=64)
        result = rubato.train(nn.Linear(2, 1), (inputs, targets[:, None]), loss=nn.MSELoss(), trace=64, epochs=40, lr=0.1)
        self.assertTrue(torch.allclose(result.state_dict["weight"], torch.tensor([[2.0, -1.0]]), atol=0.01))

        class Learning(nn.Module):
            def __init__(self):
                super().__init__()
                self.factor = nn.Parameter(torch.ones(()))

            def forward(self, output, target):
                return self.factor * (output - target).square().mean()

        self.refuses("parameter 'factor' of the TorchScript loss would not be trained", nn.Linear(2, 1),
                     (inputs, targets[:, None]), loss=Learning(), trace=64)
        for loss in ("cross-entropy", nn.CrossEntropyLoss()):
            self.refuses("integers would be classes|classes are integers", nn.Linear(2, 2),
                         (inputs, (targets > 0).astype(numpy.float32)), loss=loss, trace=64)

    def test_losses(self):
        self.refuses("unknown loss", Plain(), blobs(), loss="cross-entropi")
        self.refuses("is not a loss", Plain(), blobs(), loss=42)
        self.refuses("cannot be scripted", Plain(), blobs(), loss=lambda output, target: open("x"))
        def positional(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(output, target, "mean")

        class Untyped(nn.Module):
            def forward(self, output, target, weight=None):
                return F.cross_entropy(output, target, weight=weight)

        # The reason stands behind the signature of what was called, and before the place.
        self.refuses(r"(?s)cannot be scripted: Expected a value of type 'Optional\[Tensor\]' for argument 'weight' .*'str', at "
                     r".*own_model_test.py, line \d+: return F.cross_entropy\(output, target, \"mean\"\)\naccepted: ",
                     Plain(), blobs(), loss=positional)
        self.refuses(r"default is None has no type; accepted: typing.Optional\[torch.Tensor\]", Plain(), blobs(), loss=Untyped())
        self.refuses("only libtorch does --loss mse", "softmax", "digits", loss="mse", engine="eigen")
        self.refuses("label-smoothing", Plain(), blobs(), loss=nn.CrossEntropyLoss(), label_smoothing=0.1, trace=64)
        self.refuses("engine eigen", Plain(), blobs(), engine="eigen")


if __name__ == "__main__":
    unittest.main()
