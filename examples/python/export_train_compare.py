"""Export a model, train it in a run folder, read it back, and compare rules under one trace."""

import tempfile
from pathlib import Path

import rubato
import torch
from torch import nn

with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)

    # Export: C++ trains TorchScript, from a module or a file.
    torch.manual_seed(1)
    torch.jit.save(torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, 10))),
                   folder / "model.pt")

    # Train half of it with a run folder, then continue from the checkpoint.
    model = torch.jit.load(folder / "model.pt")
    rubato.train(model, "digits", epochs=1, lr=0.05, out=folder / "run")
    result = rubato.train(model, resume=folder / "run", data="digits", epochs=2)
    whole = rubato.train(model, "digits", epochs=2, lr=0.05)
    print("the same weights as without a stop:", result.sha256 == whole.sha256)

    # Read the weights back from the folder.
    model.load_state_dict(torch.load(folder / "run" / "weights.pt"))
    print("the file has the weights:", all(torch.equal(value, result.state_dict[name])
                                           for name, value in model.state_dict().items()))

# Compare: the same budget of samples, under devices that come and go.
trace = rubato.Trace.generate("spot:most=16,wait=0.02,life=0.05,seed=1", end="hold")
for rule in ("constant", "linear", "root", "adascale"):
    found = rubato.train("softmax", trace=trace, rule=rule, epochs=2)
    print(f"{rule:9} {100 * found.test_accuracy:.2f} % after {found.steps.rows} steps, {found.steps['iterations'][-1]:.0f} "
          "scale-invariant iterations")
